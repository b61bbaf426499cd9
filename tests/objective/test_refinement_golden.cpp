// Recursive refinement against a plain PyTorch implementation (tests/golden/make_refinement.py).
#include "golden/golden.hpp"
#include "objective/refinement.hpp"

namespace tern {
namespace {

class Case {
 public:
  explicit Case(const std::string& name)
      : golden_(TERN_SOURCE_DIR "/tests/golden/refinement.h5"), name_(name + "/") {}

  std::vector<double> numbers(const std::string& of) const { return golden_.numbers(name_ + of); }
  double number(const std::string& of) const { return golden_.number(name_ + of); }
  std::int64_t integer(const std::string& of) const {
    return static_cast<std::int64_t>(number("case/" + of));
  }
  std::size_t sequences() const { return static_cast<std::size_t>(integer("sequences")); }
  std::size_t positions() const { return static_cast<std::size_t>(integer("positions")); }

  deck::Deck deck() const {
    deck::Deck deck = test::refinement_deck();
    deck::Model& m = deck.model;
    m.layers = integer("layers"), m.hidden = integer("hidden"), m.heads = integer("heads");
    m.kv_heads = integer("kv_heads"), m.head_dim = integer("head_dim");
    m.ffn_hidden = integer("ffn_hidden"), m.vocabulary = integer("vocabulary");
    m.inner_steps = integer("inner_steps"), m.rope_base = number("case/rope_base");
    m.norm_eps = number("case/norm_eps"), m.logit_cap = number("case/logit_cap");
    m.norm = integer("layernorm") ? "layernorm" : "rmsnorm";
    m.activation = integer("swiglu") ? "swiglu" : "relu2";
    m.qk_norm = integer("qk_norm"), m.tie_embeddings = integer("tied");
    if (integer("by_block")) m.recursion = "block";
    if (integer("from_input")) m.initial_states = "input";
    if (integer("reward_sum")) deck.objective.reward_over = "sum";
    deck.objective.detach_from = integer("detach_from");
    deck.objective.supervision_steps = integer("supervision_steps");
    deck.objective.weight_base = number("case/weight_base");
    deck.objective.reward = number("case/reward");
    return deck;
  }
  data::Batch batch() const {
    const auto tokens = [&](const char* of) {
      const std::vector<double> values = numbers(of);
      return std::vector<std::int32_t>(values.begin(), values.end());
    };
    return test::causal_batch(sequences(), positions(), tokens("tokens"), tokens("targets"));
  }

 private:
  test::Golden golden_;
  std::string name_;
};

struct Errors {
  double loss = 0, steps = 0, logits = 0, gradient = 0;
};

template <class T>
Errors errors_of(const Case& golden) {
  const deck::Deck deck = golden.deck();
  test::Pass<T> pass(deck, golden.sequences(), golden.positions());
  for (const model::Parameter& p : pass.tree.parameters()) {
    const std::vector<double> values = golden.numbers("parameters/" + p.name);
    pass.set(p.name, {values.begin(), values.end()});
  }
  pass.parameters->refresh_compute(pass.context);
  Errors e;
  const double loss = golden.number("loss");
  e.loss = std::abs(pass.step(golden.batch()) - loss) / std::abs(loss);
  e.steps = test::relative_error(pass.parts, golden.numbers("step_losses"));
  for (const model::Parameter& p : pass.tree.parameters())
    e.gradient = std::max(e.gradient, test::relative_error(pass.gradient(p.name),
                                                           golden.numbers("gradients/" + p.name)));
  const std::vector<double> logits = golden.numbers("logits");
  const std::size_t rows = golden.sequences() * golden.positions();
  const Kokkos::View<T**, Kokkos::LayoutRight, DeviceMemory> made("logits", rows,
                                                                  logits.size() / rows);
  pass.transformer->logits(pass.context, 0, made);
  ops::cap_logits<T>(pass.context, deck.model.logit_cap, made);
  e.logits = test::relative_error(test::download(made), logits);
  std::printf("loss %.1e, steps %.1e, logits %.1e, worst gradient %.1e\n", e.loss, e.steps,
              e.logits, e.gradient);
  return e;
}

class RefinementGolden : public testing::TestWithParam<const char*> {};

TEST_P(RefinementGolden, DoubleMatches) {
  const Errors e = errors_of<double>(Case(GetParam()));
  EXPECT_LT(e.loss, 1e-12);
  EXPECT_LT(e.steps, 1e-12);
  EXPECT_LT(e.logits, 1e-12);
  EXPECT_LT(e.gradient, 1e-11);
}

TEST_P(RefinementGolden, FloatMatchesToRounding) {
  const Errors e = errors_of<float>(Case(GetParam()));
  EXPECT_LT(e.loss, 1e-5);
  EXPECT_LT(e.steps, 1e-5);
  EXPECT_LT(e.logits, 1e-5);
  EXPECT_LT(e.gradient, 3e-5);
}

INSTANTIATE_TEST_SUITE_P(Refinement, RefinementGolden,
                         testing::Values("llama", "nanochat", "extreme", "connected", "from_input",
                                         "blocks", "blocks_connected", "blocks_learned"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tern
