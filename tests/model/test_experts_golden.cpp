// MoE layers compared with Transformers' Qwen3MoeForCausalLM: logits, losses and all gradients of
// tiny models (tests/golden/make_qwen3_moe.py).
#include "golden/golden_model.hpp"
#include "model/golden_gradients.hpp"

namespace tern {
namespace {

const std::string folder = std::string(TERN_SOURCE_DIR) + "/tests/golden/";

struct Errors {
  double logits, loss, router_loss;
  test::GradientErrors gradients;
};

template <class T>
Errors errors_of(const std::string& name, bool recompute) {
  const test::Golden golden(folder + name + ".h5");
  const std::vector<std::size_t> shape = golden.shape("tokens");
  model::TransformerOptions options{shape[0], shape[1]};
  options.recompute = recompute;
  options.head_rows = 7;
  test::Harness<T> model(test::golden_model(golden), options);
  for (const model::Parameter& p : model.tree.parameters()) {
    EXPECT_EQ(golden.shape("parameters/" + p.name), p.shape) << p.name;
    const std::vector<double> values = golden.numbers("parameters/" + p.name);
    model.set(p.name, {values.begin(), values.end()});
  }
  model.parameters->refresh_compute(model.context);
  model.set_batch(golden.integers("tokens"), golden.integers("targets"));

  Errors result{};
  result.logits = test::relative_error(model.logits(), golden.numbers("logits"));
  const double loss = golden.number("loss"), balance = golden.number("router_loss");
  const double total = model.step(), term = model.balance_term();
  result.loss = std::abs(total - term - loss) / loss;
  result.router_loss = std::abs(term / model.description.router_loss - balance) / balance;
  result.gradients = test::gradient_errors(model, golden, [&](const std::string& p) {
    return test::norm(golden.numbers("gradients/" + p));
  });
  std::printf(
      "%s %s: relative error of logits %.1e, loss %.1e, router loss %.1e, all gradients %.1e, "
      "worst "
      "%.1e (%s)\n",
      name.c_str(), type_name<T>(), result.logits, result.loss, result.router_loss,
      result.gradients.all, result.gradients.worst, result.gradients.name.c_str());
  return result;
}

class GoldenExperts : public testing::TestWithParam<const char*> {};

TEST_P(GoldenExperts, DoubleIsTheFloat64Reference) {
  const Errors e = errors_of<double>(GetParam(), false);
  EXPECT_LT(e.logits, 1e-12);
  EXPECT_LT(e.loss, 1e-12);
  EXPECT_LT(e.router_loss, 1e-12);
  EXPECT_LT(e.gradients.worst, 1e-11) << e.gradients.name;
}

TEST_P(GoldenExperts, FloatMatchesToRounding) {
  for (const bool recompute : {false, true}) {
    const Errors e = errors_of<float>(GetParam(), recompute);
    EXPECT_LT(e.logits, 1e-5);
    EXPECT_LT(e.loss, 1e-5);
    EXPECT_LT(e.router_loss, 1e-5);
    EXPECT_LT(e.gradients.worst, 1e-5) << e.gradients.name;
  }
}

/// No worse than twice the error of Transformers itself in the same precision.
TEST_P(GoldenExperts, SixteenBitsLoseNoMoreThanTransformersDoes) {
  const test::Golden golden(folder + std::string(GetParam()) + ".h5");
  for (const auto& [name, e] : {std::pair(std::string("bf16"), errors_of<bf16>(GetParam(), false)),
                                {std::string("fp16"), errors_of<fp16>(GetParam(), false)}}) {
    EXPECT_LT(e.logits, 2 * golden.number(name + "_logits")) << name;
    EXPECT_LT(e.gradients.all, 2 * golden.number(name + "_gradients")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, GoldenExperts,
                         testing::Values("qwen3_moe", "qwen3_moe_plain"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tern
