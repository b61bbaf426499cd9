// The parameter tree: names, layout, counts and initial values.
#include <set>

#include "base/error.hpp"
#include "model/harness.hpp"

namespace tern {
namespace {

TEST(ParameterTree, Counts350M) {
  deck::Model m;
  m.layers = 24, m.hidden = 1024, m.heads = m.kv_heads = 16, m.head_dim = 64, m.ffn_hidden = 2752;
  const model::ParameterTree tree(model::declare(m));
  const std::size_t D = 1024, matrices = 50304 * D + 24 * (4 * D * D + 3 * D * 2752);
  EXPECT_EQ(tree.decayed(), matrices);
  EXPECT_EQ(tree.count(), matrices + (2 * 24 + 1) * D);
  EXPECT_EQ(tree.span(), tree.count());  // sizes that are multiples of 16 need no padding
}

class Layout : public testing::TestWithParam<deck::Model> {};

TEST_P(Layout, IsDisjointAlignedAndFused) {
  const deck::Model& m = GetParam();
  const model::ParameterTree tree(model::declare(m));
  std::set<std::string> names;
  std::size_t end = 0;
  for (const model::Parameter& p : tree.parameters()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_GE(p.offset, end) << p.name;
    EXPECT_EQ(p.matrix(), p.offset < tree.decayed()) << p.name;
    end = p.offset + p.count;
    const bool inside = p.name.find("k_proj") != std::string::npos ||
                        p.name.find("v_proj") != std::string::npos ||
                        (p.name.find("up_proj") != std::string::npos && m.activation == "swiglu");
    EXPECT_TRUE(inside || p.offset % 16 == 0) << p.name;
  }
  EXPECT_LE(end, tree.span());
  EXPECT_EQ(tree.span() % 16, 0u);
  const auto follows = [&](const std::string& a, const std::string& b) {
    EXPECT_EQ(tree.at(a).offset + tree.at(a).count, tree.at(b).offset) << b;
  };
  const std::string at = "model/layers/1/";
  follows(at + "self_attn/q_proj/weight", at + "self_attn/k_proj/weight");
  follows(at + "self_attn/k_proj/weight", at + "self_attn/v_proj/weight");
  if (m.activation == "swiglu") follows(at + "mlp/gate_proj/weight", at + "mlp/up_proj/weight");
  if (m.attention_bias) follows(at + "self_attn/k_proj/bias", at + "self_attn/v_proj/bias");
  EXPECT_EQ(tree.has("lm_head/weight"), !m.tie_embeddings);
  EXPECT_THROW(tree.at("model/layers/7/mlp/up_proj/weight"), InternalError);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Layout,
                         testing::Values(test::tiny_model(), test::gpt2_like(),
                                         test::qwen3_like()));

TEST(ParameterTree, PartsOfWholeMatrices) {
  for (const deck::Model& m : {test::tiny_model(), test::gpt2_like(), test::qwen3_like()})
    for (const std::size_t parts : {1, 2, 3, 4, 8, 64}) {
      const model::ParameterTree plain(model::declare(m), parts);
      const model::ParameterTree tree(model::declare(m), parts, model::Division::whole_matrices);
      const std::size_t part = tree.span() / parts;
      EXPECT_EQ(tree.span() % (16 * parts), 0u);
      EXPECT_EQ(tree.count(), plain.count());
      ASSERT_EQ(tree.parameters().size(), plain.parameters().size());
      std::size_t end = 0, largest = 0;
      for (const model::Parameter& p : tree.parameters()) {
        EXPECT_GE(p.offset, end) << p.name;
        end = p.offset + p.count;
        EXPECT_EQ(p.matrix(), p.offset < tree.decayed()) << p.name;
        if (!p.matrix() || p.name.find("layers") == std::string::npos) continue;
        largest = std::max(largest, p.count);
        EXPECT_EQ(p.offset / part, (end - 1) / part) << p.name << " in " << parts << " parts";
      }
      EXPECT_LE(end, tree.span());
      EXPECT_LE(tree.span(), plain.span() + parts * 3 * largest);
      const std::string at = "model/layers/1/self_attn/";
      EXPECT_EQ(tree.at(at + "k_proj/weight").offset + tree.at(at + "k_proj/weight").count,
                tree.at(at + "v_proj/weight").offset);
    }
}

TEST(Initialization, HasTheStatedMomentsAndIsAFunctionOfTheSeed) {
  deck::Model m = test::gpt2_like();
  m.hidden = 96, m.heads = m.kv_heads = 4, m.head_dim = 24, m.ffn_hidden = 384, m.layers = 8;
  m.init_std = 0.02;
  const model::TransformerOptions options{1, 2};
  test::Harness<float> a(m, options), b(m, options);
  test::Harness<bf16> c(m, options);
  a.parameters->initialize(a.context, a.tree, 7);
  b.parameters->initialize(b.context, b.tree, 8);
  c.parameters->initialize(c.context, c.tree, 7);
  const auto values = [&](const auto& of, const std::string& name) {
    const model::Parameter& p = of.tree.at(name);
    return test::download(Vector<float>(of.parameters->master.data() + p.offset, p.count));
  };
  const auto deviation = [](const std::vector<double>& v) {
    return test::norm(v) / std::sqrt(static_cast<double>(v.size()));
  };
  const std::string up = "model/layers/2/mlp/up_proj/weight", at = "model/layers/3/";
  EXPECT_NEAR(deviation(values(a, up)), 0.02, 0.02 * 0.02);
  EXPECT_NEAR(deviation(values(a, at + "mlp/down_proj/weight")), 0.02 / 4, 0.02 * 0.02 / 4);
  EXPECT_NEAR(deviation(values(a, at + "self_attn/o_proj/weight")), 0.02 / 4, 0.04 * 0.02 / 4);
  const std::vector<double> drawn = values(a, up);
  double mean = 0, fourth = 0;
  for (const double v : drawn) mean += v, fourth += std::pow(v / 0.02, 4);
  EXPECT_NEAR(mean / static_cast<double>(drawn.size()), 0, 5 * 0.02 / std::sqrt(drawn.size()));
  EXPECT_NEAR(fourth / static_cast<double>(drawn.size()), 3, 0.3);
  EXPECT_NE(drawn, values(b, up));
  EXPECT_NE(drawn, values(a, "model/layers/3/mlp/up_proj/weight"));
  EXPECT_EQ(drawn, values(c, up));
  for (const double gain : values(a, "model/norm/weight")) EXPECT_EQ(gain, 1);
  for (const double bias : values(a, at + "mlp/up_proj/bias")) EXPECT_EQ(bias, 0);
  const std::vector<double> rounded = test::download(c.parameters->compute),
                            master = test::download(c.parameters->master);
  for (std::size_t i = 0; i < master.size(); ++i)
    ASSERT_EQ(rounded[i],
              static_cast<double>(static_cast<float>(bf16(static_cast<float>(master[i])))));
}

TEST(Initialization, OfHeadAndResidualProjectionsAsTheDeckSays) {
  deck::Model m = test::gpt2_like();
  m.tie_embeddings = false;
  m.embed_std = 0.5, m.head_std = 0.001, m.init_zero_residual = true;
  test::Harness<float> h(m, model::TransformerOptions{1, 2});
  h.parameters->initialize(h.context, h.tree, 7);
  const auto deviation = [&](const std::string& name) {
    const model::Parameter& p = h.tree.at(name);
    const auto v = test::download(Vector<float>(h.parameters->master.data() + p.offset, p.count));
    return test::norm(v) / std::sqrt(static_cast<double>(v.size()));
  };
  EXPECT_NEAR(deviation("model/embed_tokens/weight"), 0.5, 0.1);
  EXPECT_NEAR(deviation("lm_head/weight"), 0.001, 0.0002);
  EXPECT_EQ(deviation("model/layers/1/self_attn/o_proj/weight"), 0);
  EXPECT_EQ(deviation("model/layers/1/mlp/down_proj/weight"), 0);
  EXPECT_GT(deviation("model/layers/1/mlp/up_proj/weight"), 0.01);
}

/// The compute span of a bf16 model with random weights.
std::vector<double> drawn(const model::ParameterTree& tree, model::Purpose purpose) {
  const auto request = [&](Arena& arena) {
    return std::pair(ops::make_context(arena, true, "auto"),
                     model::Parameters<bf16>(tree, purpose, arena));
  };
  Arena measure;
  request(measure);
  Arena arena(measure.bytes());
  auto [context, parameters] = request(arena);
  EXPECT_EQ(parameters.has_master(), purpose == model::Purpose::training);
  EXPECT_EQ(measure.bytes(Term::parameters),
            aligned(2 * tree.span()) + (parameters.has_master() ? aligned(4 * tree.span()) : 0));
  EXPECT_EQ(measure.bytes(Term::gradients) > 0, parameters.has_master());
  parameters.initialize(context, tree, 7);
  return test::download(parameters.compute);
}

TEST(Inference, DrawsTheWeightsOfTrainingWithoutMasters) {
  const model::ParameterTree tree(model::declare(test::qwen3_like()));
  EXPECT_EQ(drawn(tree, model::Purpose::inference), drawn(tree, model::Purpose::training));
}

TEST(Inference, DrawsThePartOfADividedParameter) {
  const model::ParameterTree tree(model::declare(test::gpt2_like()));
  const std::vector<double> all = drawn(tree, model::Purpose::inference);
  model::ParameterTree divided(model::declare(test::gpt2_like()));
  const model::Parameter whole = tree.at("model/layers/1/mlp/down_proj/weight");  // (24, 20)
  auto& part = const_cast<model::Parameter&>(divided.at(whole.name));
  part.shape = {7, 9}, part.first = {5, 11}, part.count = 63;
  const std::vector<double> some = drawn(divided, model::Purpose::inference);
  for (std::size_t r = 0; r < 7; ++r)
    for (std::size_t c = 0; c < 9; ++c)
      EXPECT_EQ(some[part.offset + r * 9 + c], all[whole.offset + (r + 5) * 20 + c + 11]);
}

}  // namespace
}  // namespace tern
