// Every native operation on the device compared with the portable one in double: fresh random
// inputs, odd sizes, poisoned outputs, two identical runs. The bar: no worse than twice the error
// of the portable operation in the same 16-bit type. In a build without CUDA the portable operations in float take
// their place.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"
#include "base/fp8.hpp"
#include "checks/detail/run.hpp"
#include "checks/operations.hpp"
#include "ops/check.hpp"
#include "ops/ops.hpp"

namespace tern::ops {
namespace {

using checks::CheckResult;

#if defined(TERN_NATIVE_OPERATIONS)
using Storage = bf16;
#else
using Storage = float;
#endif

std::size_t planned_bytes() {
  Arena measuring;
  make_context(measuring, true, "auto");
  return measuring.bytes();
}

template <class T>
void expect_all(const char* attention, std::uint64_t seed) {
  Arena arena(planned_bytes());
  const Context context = make_context(arena, true, attention);
  const auto results = checks::check_operations<T>(context, seed);
  ASSERT_GT(results.size(), 50u);
  for (const CheckResult& r : results)
    EXPECT_TRUE(r.passed()) << type_name<T>() << " " << r.operation << " (" << r.shape
                            << "): error " << r.error << ", bar " << r.bar << ", complete "
                            << r.complete << ", repeats " << r.repeats;
}

TEST(Operations, agree_with_double) { expect_all<Storage>("auto", 1); }

#if defined(TERN_NATIVE_OPERATIONS)
TEST(Operations, agree_with_double_in_fp16) { expect_all<fp16>("auto", 3); }
TEST(Operations, agree_with_double_without_cudnn) { expect_all<bf16>("portable", 2); }
#endif

/// A matrix in fp8 with room in `arena`.
Fp8Matrix fp8_matrix(Arena& arena, Fp8Format format, std::size_t N, std::size_t C) {
  const auto bytes = [&](std::size_t rows, std::size_t columns) {
    return arena.matrix<std::uint8_t>("codes", Term::workspace, rows, columns);
  };
  return {format, bytes(N, C), bytes(C, N), Fp8Scale(arena, "scale", Term::workspace)};
}

// Non-finite values in one operand of an 8-bit product must not vanish in the rounding.
TEST(Fp8, what_is_not_finite_is_not_lost) {
  constexpr std::size_t N = 144, I = 32, O = 80;
  Arena arena(planned_bytes() + (1 << 20));
  const Context context = make_context(arena, true, "auto");
  typename Fp8Workspace<Storage>::Sizes sizes;
  sizes.raise(N, I, O, true);
  const Fp8Workspace<Storage> work(arena, sizes);
  const Fp8Matrix qx = fp8_matrix(arena, Fp8Format::e4m3, N, I);
  const Fp8Matrix qw = fp8_matrix(arena, Fp8Format::e4m3, O, I);
  const Fp8Matrix qdy = fp8_matrix(arena, Fp8Format::e5m2, N, O);
  const auto all_nan = [](const test::Numbers& values) {
    return std::all_of(values.begin(), values.end(), [](long double v) { return std::isnan(v); });
  };
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    test::Numbers x = test::normal_numbers(N * I, 1), dy = test::normal_numbers(N * O, 2);
    x[N * I - 5] = dy[N * O / 2] = bad;
    const test::Array<Storage> good_x(N, I, test::normal_numbers(N * I, 1)), bad_x(N, I, x);
    const test::Array<Storage> w(O, I, test::normal_numbers(O * I, 3)), bad_dy(N, O, dy);
    const test::Array<Storage> y(N, O), dx(N, I);
    const test::Array<float> dw(O, I, test::Numbers(O * I));
    const auto round = [&](const test::Array<Storage>& from, const Fp8Matrix& to, Scaling scaling) {
      run(context, Fp8Round<Storage>{.values = from.matrix(), .to = to, .scaling = scaling});
    };
    const auto forward = [&] {
      run(context,
          Fp8LinearForward<Storage>{.workspace = work.values(), .x = qx, .w = qw, .y = y.matrix()});
      context.fence("test");
      return y.get();
    };
    round(w, qw, Scaling::current);
    round(good_x, qx, Scaling::current);
    const test::Numbers good = forward();
    EXPECT_TRUE(std::none_of(good.begin(), good.end(), [](auto v) { return std::isnan(v); }));
    round(bad_x, qx, Scaling::earlier);  // one row of numbers
    const test::Numbers row = forward();
    for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(std::isnan(row[i]), i / O == N - 1) << i;
    round(bad_x, qx, Scaling::current);
    EXPECT_TRUE(all_nan(forward())) << bad;
    round(bad_dy, qdy, Scaling::current);
    round(good_x, qx, Scaling::current);
    run(context, Fp8LinearBackwardWeight<Storage>{
                     .workspace = work.values(), .dy = qdy, .x = qx, .dw = dw.matrix()});
    run(context, Fp8LinearBackwardInput<Storage>{
                     .workspace = work.values(), .dy = qdy, .w = qw, .dx = dx.matrix()});
    context.fence("test");
    EXPECT_TRUE(all_nan(dx.get()) && all_nan(dw.get())) << bad;
  }
}

/// Largest magnitude of a matrix on the host, as float's bits.
std::uint32_t largest_of(const test::Array<Storage>& matrix) {
  std::uint32_t most = 0;
  for (const long double value : matrix.get())
    most = std::max(most, float_bits(static_cast<float>(value)) & 0x7fffffffu);
  return most;
}

// Operations find the largest magnitude of what they write, NaN included, whatever was there.
TEST(Magnitudes, are_those_of_the_results) {
  Arena arena(planned_bytes() + (1 << 20));
  const Context context = make_context(arena, true, "auto");
  const Magnitude magnitude = arena.vector<std::uint32_t>("magnitude", Term::workspace, 1);
  const auto expect = [&](const test::Array<Storage>& written, const std::string& what) {
    context.fence("test");
    const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), magnitude);
    EXPECT_EQ(found(0), largest_of(written)) << what;
    Kokkos::deep_copy(magnitude, 0xffffffffu);
  };
  for (const auto& [N, D] : {std::pair<std::size_t, std::size_t>{1, 8},
                             {37, 24},
                             {130, 1000},
                             {9, 2752},
                             {3, 5000},
                             {5, 7},
                             {32, 16},
                             {144, 1008},
                             {16, 5008}})
    for (const bool bad : {false, true}) {
      Arena codes(8 * N * D + 8192);
      const bool rounds = fp8_takes(N, D, 16);
      const auto ends_in = [&](Fp8Format format, std::size_t width) {
        Fp8Matrix to;
        if (rounds) to = fp8_matrix(codes, format, N, width);
        if (rounds) to.scale.magnitude = magnitude;
        return to;
      };
      const Fp8Matrix straight = ends_in(Fp8Format::e4m3, D),
                      gradient = ends_in(Fp8Format::e5m2, D);
      const Fp8Matrix wide_gradient = ends_in(Fp8Format::e5m2, 2 * D);
      const auto expect_rounded = [&](const test::Array<Storage>& written,
                                      const std::string& what) {
        if (rounds) expect(written, what);
      };
      test::Numbers numbers = test::normal_numbers(N * D, 1);
      if (bad) numbers[N * D / 2] = std::nan("");
      const std::string shape = fmt::format("({}, {}){}", N, D, bad ? " with NaN" : "");
      const test::Array<Storage> x(N, D, numbers), dy(N, D, test::normal_numbers(N * D, 2, 1e-3));
      const test::Array<Storage> gain(1, D, test::normal_numbers(D, 3)), y(N, D), dx(N, D);
      const test::Array<Storage> wide(N, 2 * D, test::normal_numbers(2 * N * D, 4)),
          dwide(N, 2 * D);
      const test::Array<float> mean(1, N), rstd(1, N), dgain(1, D, test::Numbers(D)),
          dbias(1, D, test::Numbers(D)), partial(1, norm_partials(D));
      run(context, LargestMagnitude<Storage>{.x = x.matrix(), .magnitude = magnitude});
      expect(x, "largest_magnitude " + shape);
      for (const Norm kind : {Norm::rmsnorm, Norm::layernorm}) {
        const bool centered = kind == Norm::layernorm;
        run(context, NormForward<Storage>{.kind = kind,
                                          .x = x.matrix(),
                                          .gain = gain.vector(),
                                          .bias = centered ? gain.vector() : Vector<Storage>(),
                                          .eps = 1e-5,
                                          .y = y.matrix(),
                                          .mean = mean.vector(),
                                          .rstd = rstd.vector(),
                                          .rounded = straight});
        expect_rounded(y, "norm_forward " + shape);
        for (const bool added : {false, true}) {
          run(context, NormBackward<Storage>{.kind = kind,
                                             .dy = dy.matrix(),
                                             .x = x.matrix(),
                                             .gain = gain.vector(),
                                             .mean = mean.vector(),
                                             .rstd = rstd.vector(),
                                             .dx = dx.matrix(),
                                             .residual = added ? dx.matrix() : Matrix<Storage>(),
                                             .dgain = dgain.vector(),
                                             .dbias = centered ? dbias.vector() : Vector<float>(),
                                             .partial = partial.vector(),
                                             .magnitude = magnitude});
          expect(dx, "norm_backward " + shape);
        }
      }
      for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::relu2}) {
        const bool gates = gated(kind);
        run(context, ActivationForward<Storage>{.kind = kind,
                                                .x = gates ? wide.matrix() : x.matrix(),
                                                .y = y.matrix(),
                                                .rounded = straight});
        expect_rounded(y, "activation_forward " + shape);
        const auto& to = gates ? dwide : dx;
        run(context, ActivationBackward<Storage>{.kind = kind,
                                                 .x = gates ? wide.matrix() : x.matrix(),
                                                 .dy = dy.matrix(),
                                                 .dx = to.matrix(),
                                                 .rounded = gates ? wide_gradient : gradient});
        expect_rounded(to, "activation_backward " + shape);
      }
    }
}

#if defined(TERN_NATIVE_OPERATIONS)
/// The device's weights come from a float exponential: where thousands of tokens have nearly equal
/// weights, a sum may pass the drawn number, or fill the nucleus, a token sooner or later. Bar: one
/// draw in fifty; the argmax is always the same.
template <class T>
void expect_portable_draws() {
  constexpr std::size_t B = 37, V = 50008;
  Arena arena(planned_bytes());
  const Context fast = make_context(arena, true, "auto"), plain = fast.portable();
  const Sampling choices[] = {{0, 1, 0, 1},    {1, 1, 0, 2},       {0.7, 0.9, 0, 3},
                              {1.3, 1, 50, 4}, {0.8, 0.95, 20, 5}, {1, 1e-9, 0, 6},
                              {2, 0.5, 1, 7}};
  std::size_t all = 0, alike = 0;
  for (const double deviation : {0.2, 1.0, 5.0})
    for (const Sampling& choice : choices) {
      checks::Run<T> run(fast, 9);
      test::Numbers values = test::normal_numbers(B * V, 5, deviation);
      const long double none = -std::numeric_limits<double>::infinity();
      std::fill_n(values.begin(), V, none);                   // nothing to draw
      values[V + 7] = std::nan("");                           // counts as -infinity
      std::fill_n(values.begin() + 2 * V + 100, 2000, 3.0L);  // equals
      values[3 * V + 50000] = values[3 * V + 40000] = -none;
      std::fill_n(values.begin() + 4 * V, V, -3.0L);
      values[4 * V + 100] = -0.0L, values[4 * V + 108] = values[4 * V + 8292] = 0;  // equals
      const test::Array<T> logits(B, V, values);
      std::vector<std::int32_t> ids, numbers;
      for (std::int32_t b = 0; b < static_cast<std::int32_t>(B); ++b)
        ids.insert(ids.end(), {b * 31, b % 2}), numbers.push_back(b % 7);
      const auto draw = [&](const Context& context) {
        const Vector<std::int32_t> token = run.template workspace<std::int32_t>(B);
        ops::run(context, SampleRows<T>{.options = choice,
                                        .logits = logits.matrix(),
                                        .vocabulary = V - 5,
                                        .ids = run.integers(ids),
                                        .numbers = run.integers(numbers),
                                        .token = token});
        context.fence("test");
        const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), token);
        return std::vector<std::int32_t>(host.data(), host.data() + B);
      };
      const std::vector<std::int32_t> found = draw(fast), plainly = draw(plain);
      std::size_t same = 0;
      for (std::size_t b = 0; b < B; ++b) same += found[b] == plainly[b];
      all += B, alike += same;
      if (choice.temperature == 0 || choice.top_k == 1 || choice.top_p < 1e-6) {
        EXPECT_EQ(found, plainly) << choice.temperature << ", deviation " << deviation;
      }
      EXPECT_GE(same, B - 4) << choice.temperature << " " << choice.top_p << " " << choice.top_k
                             << ", deviation " << deviation;
      EXPECT_EQ(found[0], -1);
      EXPECT_EQ(found, draw(fast));
    }
  EXPECT_GE(50 * alike, 49 * all) << alike << " of " << all;
}
TEST(SampleRows, draws_what_the_portable_operation_draws) {
  expect_portable_draws<bf16>();
  expect_portable_draws<fp16>();
}
#endif

TEST(CheckResult, needs_all_three) {
  const CheckResult good{"add", "N 1", 1e-3, 1e-3, 2e-3, true, true};
  EXPECT_TRUE(good.passed());
  CheckResult worse = good, partial = good, unsteady = good, broken = good;
  worse.error = 2.1e-3, partial.complete = false, unsteady.repeats = false;
  broken.error = std::numeric_limits<double>::infinity();
  for (const CheckResult& bad : {worse, partial, unsteady, broken}) EXPECT_FALSE(bad.passed());
}

TEST(Library, takes_what_was_planned) {
  Arena arena(planned_bytes());
  make_context(arena, true, "auto");
  EXPECT_EQ(arena.bytes(), planned_bytes());
}

TEST(Library, unknown_attention_is_an_error) {
  Arena measuring;
  EXPECT_THROW(make_context(measuring, true, "fastest"), UserError);
}

}  // namespace
}  // namespace tern::ops
