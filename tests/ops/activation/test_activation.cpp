// SwiGLU, GELU (tanh) and squared ReLU.
#include "checks/cases/activation.hpp"
#include "ops/check.hpp"

namespace tern::test {
namespace {

struct ActivationTest : checks::ActivationCase {
  Named inputs() const {
    const Numbers x = normal_numbers(N * width(), 1, 3);
    return {{"x", x}, {"x0", x}, {"dy", normal_numbers(N * F, 2)}};
  }

  template <class T>
  Named run(const Named& in) const {
    Named out = results_of<T, ActivationCase>(*this, in);
    if (in_place) out["dx"] = out.at("x"), out.erase("x");
    return out;
  }

  /// Value and slope of a function of one number, from its textbook form.
  template <class A>
  std::pair<A, A> unary(A x) const {
    if (kind == ops::Activation::relu2) return {x > 0 ? x * x : A(0), x > 0 ? 2 * x : A(0)};
    const A c = std::sqrt(A(2) / A(3.14159265358979323846));
    const A t = std::tanh(c * (x + A(0.044715) * x * x * x));
    return {x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * A(0.044715) * x * x)};
  }

  template <class A>
  Named reference(const Named& in) const {
    const std::size_t n = N, f = F;
    Named out{{"y", Numbers(n * f)}, {"dx", Numbers(n * width())}};
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < f; ++i) {
        const A x = in.at("x")[r * width() + i], dy = in.at("dy")[r * f + i];
        long double *y = &out["y"][r * f + i], *dx = &out["dx"][r * width() + i];
        if (kind == ops::Activation::swiglu) {
          const A up = in.at("x")[r * width() + f + i], s = 1 / (1 + std::exp(-x));
          *y = x * s * up;
          *dx = dy * up * (s + x * s * (1 - s));
          dx[f] = dy * x * s;
        } else {
          const auto [value, slope] = unary<A>(x);
          *y = value;
          *dx = dy * slope;
        }
      }
    return out;
  }
};

constexpr ops::Activation kinds[] = {ops::Activation::swiglu, ops::Activation::gelu,
                                     ops::Activation::relu2};

TEST(Activation, PrecisionAndRepetition) {
  for (const ops::Activation kind : kinds)
    for (const bool in_place : {false, true})
      for (const auto& [n, f] : {std::pair{37, 71}, {1, 1}, {3, 2100}}) {
        SCOPED_TRACE(testing::Message() << "kind " << int(kind) << " " << n << " x " << f);
        const ActivationTest c{{kind, std::size_t(n), std::size_t(f), in_place}};
        check_precision<double>(c, c.inputs(), {"y", "dx"});
        check_precision<float>(c, c.inputs(), {"y", "dx"});
        check_precision<bf16>(c, c.inputs(), {"y", "dx"});
        check_precision<fp16>(c, c.inputs(), {"y", "dx"});
      }
}

TEST(Activation, Gradients) {
  for (const ops::Activation kind : kinds) {
    const ActivationTest c{{kind, 5, 7}};
    Named in = c.inputs();
    for (long double& x : in["x"])
      if (std::fabs(x) < 0.01) x = 0.5;  // off the kink of relu2
    check_gradients(c, in, "y", "dy", {{"x", "dx"}});
  }
}

// Far from zero nothing overflows into NaN.
TEST(Activation, LargeInputs) {
  for (const ops::Activation kind : {ops::Activation::gelu, ops::Activation::swiglu}) {
    const ActivationTest c{{kind, 1, 4}};
    Named in{{"x", {-1e4, -200, 200, 1e4}}, {"dy", {1, 1, 1, 1}}};
    if (kind == ops::Activation::swiglu)
      for (int i = 0; i < 4; ++i) in["x"].push_back(2);
    const Named out = c.run<float>(in);
    const double factor = kind == ops::Activation::swiglu ? 2 : 1;
    EXPECT_EQ(out.at("y"), (Numbers{0, 0, 200 * factor, 1e4 * factor}));
    for (const double d : out.at("dx")) EXPECT_TRUE(std::isfinite(d));
  }
}

}  // namespace
}  // namespace tern::test
