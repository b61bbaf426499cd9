// The operations compared with PyTorch's (tests/golden/make_ops.py), in double and in float.
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
  using T = TypeParam;
  const auto& context = portable_context();
  for (const std::string kind : {"rmsnorm", "layernorm"}) {
    const bool centered = kind == "layernorm";
    const auto norm = centered ? ops::Norm::layernorm : ops::Norm::rmsnorm;
    const auto x = this->matrix(kind + "/x"), dy = this->matrix(kind + "/dy");
    const auto y = this->like(kind + "/x"), dx = this->like(kind + "/x");
    const auto gain = this->vector(kind + "/gain");
    const std::size_t rows = x.matrix().extent(0), width = x.matrix().extent(1);
    const Array<T> bias(centered ? this->numbers(kind + "/bias") : Numbers());
    const Array<T> mean(1, centered ? rows : 0), rstd(1, rows),
        partial(1, ops::norm_partials(width)), dgain(Numbers(width, 0)),
        dbias(Numbers(centered ? width : 0, 0));
    const double eps = this->file.number(kind + "/eps");
    ops::norm_forward<T>(context, {.kind = norm,
                                   .x = x.matrix(),
                                   .gain = gain.vector(),
                                   .bias = bias.vector(),
                                   .eps = eps,
                                   .y = y.matrix(),
                                   .mean = mean.vector(),
                                   .rstd = rstd.vector()});
    ops::norm_backward<T>(context, {.kind = norm,
                                    .dy = dy.matrix(),
                                    .x = x.matrix(),
                                    .gain = gain.vector(),
                                    .mean = mean.vector(),
                                    .rstd = rstd.vector(),
                                    .dx = dx.matrix(),
                                    .dgain = dgain.vector(),
                                    .dbias = dbias.vector(),
                                    .partial = partial.vector()});
    this->expect_near(y.get(), kind + "/y");
    this->expect_near(dx.get(), kind + "/dx");
    this->expect_near(dgain.get(), kind + "/dgain");
    if (centered) this->expect_near(dbias.get(), kind + "/dbias");
  }
}

TYPED_TEST(OpsGolden, Activations) {
  using T = TypeParam;
  const std::map<std::string, ops::Activation> kinds{{"gelu", ops::Activation::gelu},
                                                     {"relu2", ops::Activation::relu2},
                                                     {"swiglu", ops::Activation::swiglu}};
  for (const auto& [name, kind] : kinds) {
    const auto x = this->matrix(name + "/x"), dy = this->matrix(name + "/dy");
    const auto y = this->like(name + "/y"), dx = this->like(name + "/dx");
    ops::activation_forward<T>(portable_context(), kind, x.matrix(), y.matrix());
    ops::activation_backward<T>(portable_context(), kind, x.matrix(), dy.matrix(), dx.matrix());
    this->expect_near(y.get(), name + "/y");
    this->expect_near(dx.get(), name + "/dx");
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
    ops::head_loss_backward<T>(portable_context(),
                               {.options = {this->file.number(name + "/z_loss"), 0},
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
    ops::adamw_update<T>(portable_context(), {.rule = options,
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
