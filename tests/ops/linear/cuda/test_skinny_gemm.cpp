// Skinny GEMM on Hopper, weights in 16 bits and in fp8: a row's bits do not depend on the number of
// rows; codes multiply as their numbers do; rows are rounded as defined; other shapes are declined.
// Their errors: test_checks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "base/fp8.hpp"
#include "ops/check.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/ops.hpp"

namespace tern::ops {
namespace {

using test::Array, test::normal_numbers, test::Numbers;

std::size_t planned_bytes() {
  Arena measuring;
  make_context(measuring, true, "auto");
  return measuring.bytes();
}

enum class Codes { none, of_w, of_both };

/// A map whose weight is in fp8 and, with the same numbers, in T.
template <class T>
struct Map {
  std::size_t I, O;
  Arena arena;
  Context context;
  Array<T> w;
  Fp8Rows rounded, coded;

  Map(std::size_t i, std::size_t o)
      : I(i),
        O(o),
        arena(planned_bytes() + (O + most_rows) * (I + 16) + 4 * (O + most_rows) + 2048),
        context(make_context(arena, true, "auto")),
        w(O, I, normal_numbers(O * I, 1, 0.1)),
        rounded(arena, "w", Term::parameters, O, I),
        coded(arena, "x", Term::workspace, most_rows, I) {
    run(context, Fp8RoundRows<T>{.x = w.matrix(), .to = rounded});
    context.fence("weights");
    context.constant_weights = true;
  }
  static constexpr std::size_t most_rows = fp8_weight_rows;
  Array<T> input(std::size_t N) const {  // the first rows of the same ones
    Numbers numbers = normal_numbers(most_rows * I, 2);
    numbers.resize(N * I);
    return {N, I, numbers};
  }
  /// y, or nothing if the native kernel declines.
  Numbers multiply(std::size_t N, Codes codes) const {
    const Array<T> x = input(N), y(N, O);
    const Fp8Rows of_x = codes == Codes::of_both ? coded.shaped(N, I) : Fp8Rows();
    if (of_x.wanted()) run(context, Fp8RoundRows<T>{.x = x.matrix(), .to = of_x});
    const bool served =
        codes == Codes::none
            ? LinearForward<T>::native(context, {.x = x.matrix(), .w = w.matrix(), .y = y.matrix()})
            : Fp8WeightForward<T>::native(context, {.x = x.matrix(),
                                                    .w = w.matrix(),
                                                    .rounded = rounded,
                                                    .y = y.matrix(),
                                                    .coded = of_x});
    context.fence("product");
    return served ? y.get() : Numbers();
  }
};

template <class T>
class SkinnyGemm : public testing::Test {};
using Storages = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(SkinnyGemm, Storages, );

TYPED_TEST(SkinnyGemm, RowsDoNotDependOnTheirNumber) {
  if (!cuda::detail::runs_sm_90a()) return;  // declined: the last test
  for (const auto& [I, O] : {std::pair{1288, 328}, {2560, 6144}, {9728, 2560}, {264, 33000}}) {
    const Map<TypeParam> map(I, O);
    for (const Codes codes : {Codes::none, Codes::of_w, Codes::of_both}) {
      const Numbers all = map.multiply(fp8_weight_rows, codes);
      ASSERT_EQ(all.size(), fp8_weight_rows * map.O);
      for (const std::size_t N : {1, 7, 64, 65, 100}) {
        const Numbers few = map.multiply(N, codes);
        EXPECT_EQ(few, Numbers(all.begin(), all.begin() + static_cast<long>(N * map.O)))
            << "I " << I << ", O " << O << ", N " << N << ", codes " << static_cast<int>(codes);
      }
    }
  }
}

/// One step, or more columns than two blocks of a cluster take: both divide the work alike.
TYPED_TEST(SkinnyGemm, CodesMultiplyAsTheirNumbers) {
  if (!cuda::detail::runs_sm_90a()) return;
  for (const auto& [I, O] : {std::pair{64, 328}, {40, 2056}, {1288, 19456}, {2560, 24576}}) {
    const Map<TypeParam> map(I, O);
    for (const std::size_t N : {1, 64, 128}) {
      const Numbers found = map.multiply(N, Codes::of_w);
      ASSERT_EQ(found.size(), N * map.O);
      EXPECT_EQ(found, map.multiply(N, Codes::none)) << "I " << I << ", O " << O << ", N " << N;
    }
  }
}

TYPED_TEST(SkinnyGemm, OfCodesServesFewRowsOnHopper) {
  const bool hopper = cuda::detail::runs_sm_90a();
  for (const Codes codes : {Codes::of_w, Codes::of_both})
    EXPECT_EQ(!Map<TypeParam>(72, 40).multiply(3, codes).empty(), hopper);
  const Map<TypeParam> odd_inputs(36, 40), odd_outputs(40, 36);
  EXPECT_TRUE(odd_inputs.multiply(3, Codes::of_w).empty());
  EXPECT_TRUE(odd_outputs.multiply(3, Codes::of_w).empty());
  const Map<TypeParam> map(72, 40);
  constexpr std::size_t N = fp8_weight_rows + 1;
  const Array<TypeParam> x(N, 72, normal_numbers(N * 72, 2)), y(N, 40);
  EXPECT_FALSE(Fp8WeightForward<TypeParam>::native(
      map.context,
      {.x = x.matrix(), .w = map.w.matrix(), .rounded = map.rounded, .y = y.matrix()}));
}

/// Compared with the portable versions on the same device.
TYPED_TEST(SkinnyGemm, KernelsRoundRowsAsDefined) {
  using T = TypeParam;
  constexpr std::size_t N = 37;
  for (const std::size_t I : {8, 40, 1288, 2560, 4104, 9728}) {
    const Map<T> map(I, 8);
    Numbers numbers = normal_numbers(N * I, 3);
    for (std::size_t i = 0; i < I; ++i) {
      numbers[I + i] = 0;
      numbers[2 * I + i] *= 1e-4;
      numbers[3 * I + i] *= 1e4;
    }
    numbers[4 * I + I / 2] = std::numeric_limits<double>::infinity();
    const Array<T> x(N, I, numbers), gain(1, I, normal_numbers(I, 4));
    Array<T> y(N, I);
    const Array<float> rstd(1, N);
    const auto round = [&](const Context& context, bool norm) {
      const Fp8Rows to = map.coded.shaped(N, I);
      if (norm) {
        run(context, NormForward<T>{.kind = Norm::rmsnorm,
                                    .x = x.matrix(),
                                    .gain = gain.vector(),
                                    .eps = 1e-6,
                                    .y = y.matrix(),
                                    .rstd = rstd.vector(),
                                    .coded = to});
      } else {
        y.set(numbers);
        run(context, Fp8RoundRows<T>{.x = y.matrix(), .to = to});
      }
      context.fence("rows");
      return std::tuple(y.get(), test::on_host(to.codes), test::on_host(to.undo));
    };
    const auto [values, codes, undo] = round(map.context, false);
    const auto [wanted, wanted_codes, wanted_undo] = round(test::portable_context(), false);
    for (std::size_t i = 0; i < N * I; ++i)
      if (i / I != 4) EXPECT_EQ(values[i], wanted[i]) << "I " << I << ", " << i;
    for (std::size_t i = 0; i < codes.size(); ++i)
      if (i / code_width(I) != 4)  // zeros may differ in sign
        EXPECT_EQ(decode<E4M3>(codes[i]), decode<E4M3>(wanted_codes[i])) << "I " << I << ", " << i;
    for (std::size_t row = 0; row < N; ++row)
      if (row != 4) EXPECT_EQ(undo[row], wanted_undo[row]) << "I " << I << ", " << row;
    EXPECT_TRUE(std::isnan(undo[4]) && std::isnan(static_cast<double>(values[4 * I])));
    // Sums of squares differ in their order: most numbers are the same.
    const auto of_norm = round(map.context, true),
               wanted_of_norm = round(test::portable_context(), true);
    std::size_t same = 0;
    for (std::size_t i = 0; i < N * I; ++i)
      same += std::get<0>(of_norm)[i] == std::get<0>(wanted_of_norm)[i];
    EXPECT_GT(same, N * I * 9 / 10) << "I " << I;
  }
}

}  // namespace
}  // namespace tern::ops
