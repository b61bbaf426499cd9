// Models divided over 1, 2 and 4 ranks, in double precision, compared with the whole model on one
// rank.
#include <optional>

#include "comm/mesh.hpp"
#include "model/harness.hpp"

namespace tern::test {
namespace {

struct Layout {
  int tensor, pipeline;
};

/// All layouts of the ranks that this test has.
std::vector<Layout> layouts() {
  const int ranks = comm::world()->size();
  std::vector<Layout> all;
  for (int tensor = 1; tensor <= ranks; tensor *= 2)
    if (ranks % tensor == 0 && ranks / tensor <= 2) all.push_back({tensor, ranks / tensor});
  return all;
}

/// 4 layers, and a vocabulary of 40 of which 37 are tokens.
deck::Model divisible(deck::Model m) {
  m.layers = 4, m.vocabulary = 40;
  return m;
}

/// With all connections; on one stage.
deck::Model connected() {
  deck::Model m = divisible(qwen3_like());
  m.skip_connections = m.input_shortcut = true;
  m.kv_heads = 4, m.value_embeddings = 2;
  return m;
}

/// Whether the model can have the layout.
bool fits(const deck::Model& m, const Layout& layout) {
  return layout.pipeline == 1 || m.value_embeddings == 0;
}

std::vector<deck::Model> models() {
  deck::Model tied = divisible(tiny_model()), capped = divisible(gpt2_like());
  tied.levels = 0;
  capped.logit_cap = 5;
  deck::Model experts = divisible(moe_like());
  experts.router_loss = 0;
  return {tied, capped, divisible(qwen3_like()), experts, connected()};
}

class Divided {
 public:
  Divided(const deck::Model& m, const Layout& layout)
      : mesh(comm::world(), {1, layout.tensor, layout.pipeline},
             static_cast<int>(model::kv_replicas(m, static_cast<std::size_t>(layout.tensor)))) {}
  comm::Mesh mesh;
  model::ModelShard share() const { return model::share_of(mesh); }
};

/// The elements of the whole parameter that the part `p` holds.
std::vector<double> cut(const std::vector<double>& whole, const model::Parameter& p) {
  std::vector<double> part;
  const std::size_t rows = p.shape.size() > 1 ? p.shape[0] : 1, columns = p.shape.back();
  const std::size_t width = p.whole.back(), row = p.shape.size() > 1 ? p.first[0] : 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      part.push_back(whole[(row + i) * width + p.first.back() + j]);
  return part;
}

ops::HeadOptions head_of(const deck::Model& m) { return {1e-3, 37, m.logit_cap}; }

TEST(Shares, InitialValuesAreThoseOfTheWhole) {
  for (const deck::Model& m : models())
    for (const Layout& layout : layouts()) {
      if (!fits(m, layout)) continue;
      const Divided divided(m, layout);
      const model::TransformerOptions options{2, 5};
      Harness<float> whole(m, options), part(m, options, divided.share());
      whole.parameters->initialize(whole.context, whole.tree, 7);
      part.parameters->initialize(part.context, part.tree, 7);
      for (const model::Parameter& p : part.tree.parameters()) {
        const model::Parameter& all = whole.tree.at(p.name);
        EXPECT_EQ(all.shape, p.whole);
        const auto values = [&](const Harness<float>& h, const model::Parameter& q) {
          return download(Vector<float>(h.parameters->master.data() + q.offset, q.count));
        };
        EXPECT_EQ(cut(values(whole, all), p), values(part, p)) << p.name;
      }
    }
}

TEST(Shares, EachParameterIsCountedOnce) {
  for (const deck::Model& m : models())
    for (const Layout& layout : layouts()) {
      if (!fits(m, layout)) continue;
      const Divided divided(m, layout);
      const model::ParameterTree whole(model::declare(m)),
          part(model::declare(m), 1, model::Division::anywhere, divided.share());
      std::int64_t counted = 0;
      for (const model::Parameter& p : part.parameters())
        if (p.counted) counted += static_cast<std::int64_t>(p.count);
      divided.mesh.world().all_reduce(&counted, 1, comm::Sum::sum);
      EXPECT_EQ(counted, static_cast<std::int64_t>(whole.count()));
      std::size_t stretches = 0;
      for (const Range& range : part.counted())
        for (const model::Parameter& p : part.parameters()) {
          const bool within = range.contains(p.offset);
          EXPECT_TRUE(!within || (p.counted && p.offset + p.count <= range.end())) << p.name;
          stretches += within;
        }
      const auto& all = part.parameters();
      EXPECT_EQ(stretches, static_cast<std::size_t>(std::count_if(
                               all.begin(), all.end(), [](const auto& p) { return p.counted; })));
    }
}

void expect_same_step(const deck::Model& m, const Layout& layout, bool recompute,
                      const model::Sequences& of = {2, 9}) {
  const Divided divided(m, layout);
  model::TransformerOptions options{of.batch, of.tokens};
  const std::size_t rows = of.rows();
  options.recompute = recompute;
  options.head_rows = 7;  // the last chunk is smaller
  Harness<double> whole(m, options), part(m, options, divided.share());
  for (Harness<double>* h : {&whole, &part}) {
    h->head = head_of(m);
    h->parameters->initialize(h->context, h->tree, 11);
    auto inputs = random_tokens(rows, 37, 3), targets = random_tokens(rows, 37, 4);
    targets[5] = -1;
    h->set_batch(inputs, targets);
  }
  const ops::DropoutKey dropout{m.dropout, 5, 1, 0, 0};
  whole.step(dropout);
  part.step(dropout);
  part.transformer->settle(part.context);
  part.parameters->complete_gradients(part.context, part.tree);
  part.context.fence("gradients");
  if (part.tree.share().last()) {
    EXPECT_LT(relative_error(download(part.losses), download(whole.losses)), 1e-12);
  }
  for (const model::Parameter& p : part.tree.parameters()) {
    const auto wanted = cut(whole.gradient(p.name), p);
    EXPECT_LT(distance(part.gradient(p.name), wanted), 1e-11 * (1e-3 + norm(wanted))) << p.name;
  }
}

TEST(Shares, LossesAndGradientsAreThoseOfTheWhole) {
  for (deck::Model m : models())
    for (const Layout& layout : layouts())
      if (fits(m, layout)) expect_same_step(m, layout, false);
}

/// Rows enough for two tensor ranks to sum them in two pieces, of which the last is larger; the
/// pieces are of whole sequences, unless there is but one.
TEST(Shares, LossesAndGradientsOfManyRowsToo) {
  for (deck::Model m : models())
    for (const Layout& layout : layouts())
      for (const model::Sequences& of : {model::Sequences{31, 9}, {1, 279}}) {
        if (!fits(m, layout)) continue;
        m.context = std::max<std::int64_t>(m.context, 279);
        expect_same_step(m, layout, layout.pipeline > 1, of);
      }
}

TEST(Shares, RecomputationAndDropoutToo) {
  for (deck::Model m : models())
    for (const Layout& layout : layouts()) {
      if (!fits(m, layout)) continue;
      m.dropout = 0.2;
      expect_same_step(m, layout, true);
    }
}

TEST(Shares, LossesBestTokensAndLogitsOfAnEvaluationAreOnAllRanks) {
  for (const deck::Model& m : models())
    for (const Layout& layout : layouts()) {
      if (!fits(m, layout)) continue;
      const Divided divided(m, layout);
      model::TransformerOptions options{2, 9};
      options.training = false;
      options.head_rows = 7;
      Harness<double> whole(m, options), part(m, options, divided.share());
      std::vector<std::int32_t> best[2];
      std::vector<double> losses[2], logits[2];
      for (const int i : {0, 1}) {
        Harness<double>& h = i == 0 ? whole : part;
        h.head = head_of(m);
        h.parameters->initialize(h.context, h.tree, 11);
        h.set_batch(random_tokens(18, 37, 3), random_tokens(18, 37, 4));
        const Vector<std::int32_t> tokens = h.order;  // unused in evaluation: receives the argmax
        h.transformer->forward(h.context, h.micro());
        h.transformer->loss(h.context, h.micro(), h.head, h.losses, tokens);
        for (const double token : download(tokens))
          best[i].push_back(static_cast<std::int32_t>(token));
        losses[i] = download(h.losses);
        h.transformer->logits(h.context, 0, h.logit_rows);
        logits[i] = download(h.logit_rows);
      }
      EXPECT_LT(relative_error(losses[1], losses[0]), 1e-12);
      EXPECT_LT(relative_error(logits[1], logits[0]), 1e-12);
      EXPECT_EQ(best[1], best[0]);
    }
}

TEST(Shares, ATargetBeyondTheVocabularyIsNoLoss) {
  const deck::Model m = divisible(tiny_model());
  for (const Layout& layout : layouts()) {
    const Divided divided(m, layout);
    Harness<double> part(m, {1, 4}, divided.share());
    part.head = head_of(m);
    part.parameters->initialize(part.context, part.tree, 11);
    part.set_batch({1, 2, 3, 4}, {5, 38, -1, 36});
    part.transformer->forward(part.context, part.micro());
    part.transformer->loss(part.context, part.micro(), part.head, part.losses);
    const auto losses = download(part.losses);
    EXPECT_GT(losses[0], 0);
    EXPECT_TRUE(std::isnan(losses[1]));
    EXPECT_EQ(losses[2], 0);
    EXPECT_GT(losses[3], 0);
  }
}

TEST(Shares, StagesHoldAllLayersInOrder) {
  deck::Model m = tiny_model();
  m.layers = 7;
  std::size_t next = 0;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    const Range held = model::layers_of(m, {0, 1, stage, 3, nullptr});
    EXPECT_EQ(held.first, next);
    EXPECT_GE(held.count, 1u);
    next = held.end();
  }
  EXPECT_EQ(next, 7u);
}

/// The 350M GPT's head has the weights of 4.1 of its 24 layers: 14.1 of 28.1 per stage.
TEST(Shares, TheLastStageHasFewerLayersForItsHead) {
  deck::Model m;
  m.layers = 24, m.hidden = 1024, m.heads = m.kv_heads = 16, m.head_dim = 64;
  m.ffn_hidden = 2752, m.activation = "swiglu", m.vocabulary = 50304;
  const auto layers = [&](std::size_t stages) {
    std::vector<std::size_t> counts;
    for (std::size_t stage = 0; stage < stages; ++stage)
      counts.push_back(model::layers_of(m, {0, 1, stage, stages, nullptr}).count);
    return counts;
  };
  EXPECT_EQ(layers(1), (std::vector<std::size_t>{24}));
  EXPECT_EQ(layers(2), (std::vector<std::size_t>{14, 10}));
  EXPECT_EQ(layers(4), (std::vector<std::size_t>{7, 7, 7, 3}));
  m.layers = 4;  // of a vocabulary so large that each layer has a stage
  EXPECT_EQ(layers(4), (std::vector<std::size_t>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace tern::test
