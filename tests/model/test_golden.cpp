// The transformer compared with Hugging Face Transformers: logits, loss and all gradients of tiny
// models (tests/golden/make_transformers.py), in double with float64, and in float and bf16.
#include "model/golden_gradients.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

const std::string folder = std::string(TERN_SOURCE_DIR) + "/tests/golden/";

struct Errors {
  double logits, loss;
  test::GradientErrors gradients;
};

/// A bias of keys shifts all scores of a query alike (except for rotation), so its gradient is
/// almost zero: its error is relative to the size of the values' bias, which enters the same
/// product.
double scale_of(const test::Golden& golden, const std::string& name) {
  const std::size_t at = name.find("k_proj/bias");
  const std::string measured = at == std::string::npos ? name : name.substr(0, at) + "v_proj/bias";
  return test::norm(golden.numbers("gradients/" + measured));
}

template <class T>
Errors errors_of(const std::string& name, bool recompute) {
  const transformers::TransformersReader reader(folder + name);
  const test::Golden golden(folder + name + ".h5");
  const std::vector<std::size_t> shape = golden.shape("tokens");
  model::TransformerOptions options{shape[0], shape[1]};
  options.recompute = recompute;
  options.head_rows = 7;  // several chunks, the last one shorter
  test::Harness<T> model(reader.model(), options);
  for (const model::Parameter& p : model.tree.parameters())
    model.set(p.name, reader.read(p.name, p.shape));
  model.parameters->refresh_compute(model.context);
  model.set_batch(golden.integers("tokens"), golden.integers("targets"));

  Errors result{};
  result.logits = test::relative_error(model.logits(), golden.numbers("logits"));
  const double loss = golden.numbers("loss")[0];
  result.loss = std::abs(model.step() - loss) / loss;
  result.gradients = test::gradient_errors(
      model, golden, [&](const std::string& p) { return scale_of(golden, p); });
  std::printf(
      "%s %s: relative error of logits %.1e, loss %.1e, all gradients %.1e, worst %.1e (%s)\n",
      name.c_str(), type_name<T>(), result.logits, result.loss, result.gradients.all,
      result.gradients.worst, result.gradients.name.c_str());
  return result;
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, DoubleIsTheFloat64Reference) {
  const Errors e = errors_of<double>(GetParam(), false);
  EXPECT_LT(e.logits, 1e-10);
  EXPECT_LT(e.loss, 1e-10);
  EXPECT_LT(e.gradients.worst, 1e-10) << e.gradients.name;
}

TEST_P(Golden, FloatMatchesToRounding) {
  for (const bool recompute : {false, true}) {
    const Errors e = errors_of<float>(GetParam(), recompute);
    EXPECT_LT(e.logits, 1e-5);
    EXPECT_LT(e.loss, 1e-5);
    EXPECT_LT(e.gradients.worst, 1e-5) << e.gradients.name;
  }
}

/// No worse than twice the error of Transformers itself in the same precision.
TEST_P(Golden, SixteenBitsLoseNoMoreThanTransformersDoes) {
  const test::Golden golden(folder + std::string(GetParam()) + ".h5");
  for (const auto& [name, e] : {std::pair(std::string("bf16"), errors_of<bf16>(GetParam(), false)),
                                {std::string("fp16"), errors_of<fp16>(GetParam(), false)}}) {
    EXPECT_LT(e.logits, 2 * golden.number(name + "_logits")) << name;
    EXPECT_LT(e.gradients.all, 2 * golden.number(name + "_gradients")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, Golden,
                         testing::Values("llama_tied", "llama_untied", "qwen3", "gpt2"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tern
