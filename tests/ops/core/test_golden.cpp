// The operations compared with PyTorch's (tests/golden/make_ops.py), in double and in float.
#include "checks/cases/activation.hpp"
#include "checks/cases/norm.hpp"
#include "golden/golden.hpp"
#include "ops/check.hpp"

namespace tern::test {
namespace {

template <class T>
class OpsGolden : public testing::Test {
 protected:
  using A = Accumulate<T>;

  Numbers numbers(const std::string& name) const {
    const std::vector<double> values = file.numbers(name);
    return {values.begin(), values.end()};
  }
  /// A matrix of the file on the device.
  Array<T> matrix(const std::string& name) const {
    const auto shape = file.shape(name);
    return {shape.at(0), shape.at(1), numbers(name)};
  }
  Array<T> like(const std::string& name) const {
    const auto shape = file.shape(name);
    return {shape.at(0), shape.at(1)};
  }
  Array<T> vector(const std::string& name) const { return Array<T>(numbers(name)); }
  /// A few roundings of the arithmetic's precision.
  void expect_near(const Numbers& result, const std::string& name) const {
    EXPECT_LE(relative_error(result, numbers(name)), 4 * std::numeric_limits<A>::epsilon()) << name;
  }

  const Golden file{std::string(TERN_SOURCE_DIR) + "/tests/golden/ops.h5"};
};
using Precisions = testing::Types<double, float>;
TYPED_TEST_SUITE(OpsGolden, Precisions, );

TYPED_TEST(OpsGolden, Norms) {
  for (const std::string kind : {"rmsnorm", "layernorm"}) {
    const auto shape = this->file.shape(kind + "/x");
    const checks::NormCase norm{
        .norm = kind == "layernorm" ? ops::Norm::layernorm : ops::Norm::rmsnorm,
        .N = shape.at(0),
        .D = shape.at(1),
        .eps = this->file.number(kind + "/eps")};
    Named in{{"dgain0", Numbers(norm.D)}, {"dbias0", Numbers(norm.D)}};
    for (const char* name : {"x", "dy", "gain"}) in[name] = this->numbers(kind + "/" + name);
    if (norm.centered()) in["bias"] = this->numbers(kind + "/bias");
    const Named results = results_of<TypeParam>(norm, in);
    for (const std::string name : {"y", "dx", "dgain", "dbias"})
      if (name != "dbias" || norm.centered())
        this->expect_near(results.at(name), kind + "/" + name);
  }
}

TYPED_TEST(OpsGolden, Activations) {
  for (const ActivationKind& one : activation_kinds) {
    const std::string name = one.name;
    const auto shape = this->file.shape(name + "/y");
    const Named in{{"x", this->numbers(name + "/x")}, {"dy", this->numbers(name + "/dy")}};
    const Named results =
        results_of<TypeParam>(checks::ActivationCase{one.kind, shape.at(0), shape.at(1)}, in);
    this->expect_near(results.at("y"), name + "/y");
    this->expect_near(results.at("dx"), name + "/dx");
  }
}

TYPED_TEST(OpsGolden, CrossEntropy) {
  using T = TypeParam;
  for (const std::string name : {"cross_entropy", "z_loss"}) {
    const auto x = this->matrix(name + "/x"), w = this->matrix(name + "/w");
    const auto dx = this->like(name + "/x");
    const auto weights = this->vector(name + "/weights");
    const Array<std::int32_t> targets(this->numbers(name + "/targets"));
    const std::size_t rows = x.matrix().extent(0), vocabulary = w.matrix().extent(0);
    const Array<T> logits(5, vocabulary), losses(1, rows);
    const Array<T> dw(vocabulary, x.matrix().extent(1), Numbers(w.vector().size(), 0));
    ops::run(portable_context(),
             ops::HeadLossBackward<T>{.options = {this->file.number(name + "/z_loss"), 0},
                                      .x = x.matrix(),
                                      .w = w.matrix(),
                                      .targets = targets.vector(),
                                      .weights = weights.vector(),
                                      .logits = logits.matrix(),
                                      .losses = losses.vector(),
                                      .dx = dx.matrix(),
                                      .dw = dw.matrix()});
    this->expect_near(losses.get(), name + "/losses");
    this->expect_near(dx.get(), name + "/dx");
    this->expect_near(dw.get(), name + "/dw");
  }
}

TYPED_TEST(OpsGolden, AdamW) {
  using T = TypeParam;
  const auto number = [&](const char* name) {
    return this->file.number(std::string("adamw/") + name);
  };
  const Numbers gradients = this->numbers("adamw/gradients"),
                parameters = this->numbers("adamw/parameters");
  const auto master = this->vector("adamw/start");
  const std::size_t n = master.vector().size(), steps = gradients.size() / n;
  const Array<T> m(Numbers(n, 0)), v(Numbers(n, 0)), scale(Numbers{1});
  for (std::size_t s = 0; s < steps; ++s) {
    const Array<T> gradient(Numbers(&gradients[s * n], &gradients[s * n] + n));
    const ops::AdamW options{number("lr"),  number("beta1"),        number("beta2"),
                             number("eps"), number("weight_decay"), std::int64_t(s) + 1};
    ops::run(portable_context(), ops::AdamWUpdate<T>{.rule = options,
                                                     .master = master.vector(),
                                                     .gradient = gradient.vector(),
                                                     .gradient_scale = scale.vector(),
                                                     .m = m.vector(),
                                                     .v = v.vector()});
    const Numbers expected(&parameters[s * n], &parameters[s * n] + n);
    EXPECT_LE(relative_error(master.get(), expected), 4 * std::numeric_limits<T>::epsilon());
  }
  this->expect_near(m.get(), "adamw/m");
  this->expect_near(v.get(), "adamw/v");
}

}  // namespace
}  // namespace tern::test
