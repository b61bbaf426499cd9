// Skinny GEMM on Hopper, weights in 16 bits and in fp8: a row's bits do not depend on the number of
// rows; codes multiply as their numbers do; other shapes are declined. Their errors: test_cuda.
#include <gtest/gtest.h>

#include "ops/check.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/ops.hpp"

namespace tern::ops {
namespace {

using test::Array, test::normal_numbers, test::Numbers;

std::size_t planned_bytes() {
  Arena measuring;
  make_context(measuring, true, "auto");
  return measuring.bytes();
}

/// A map whose weight is in fp8 and, with the same numbers, in T.
template <class T>
struct Map {
  std::size_t I, O;
  Arena arena;
  Context context;
  Array<T> w;
  Fp8Weight rounded;

  Map(std::size_t i, std::size_t o)
      : I(i),
        O(o),
        arena(planned_bytes() + O * (I + 16) + 4 * O + 1024),
        context(make_context(arena, true, "auto")),
        w(O, I, normal_numbers(O * I, 1, 0.1)),
        rounded(arena, "w", O, I) {
    fp8_round_weight<T>(context, w.matrix(), rounded);
    context.fence("weights");
    context.constant_weights = true;
  }
  Array<T> input(std::size_t N) const {  // the first rows of the same ones
    Numbers numbers = normal_numbers(fp8_weight_rows * I, 2);
    numbers.resize(N * I);
    return {N, I, numbers};
  }
  /// y, or nothing if the twin declines.
  Numbers multiply(std::size_t N, bool codes) const {
    const Array<T> x = input(N), y(N, O);
    const bool served =
        codes ? native_fp8_weight_forward<T>(context, x.matrix(), w.matrix(), rounded, {},
                                             y.matrix(), {})
              : native_linear_forward<T>(context, x.matrix(), w.matrix(), {}, y.matrix(), {});
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
    for (const bool codes : {false, true}) {
      const Numbers all = map.multiply(fp8_weight_rows, codes);
      ASSERT_EQ(all.size(), fp8_weight_rows * map.O);
      for (const std::size_t N : {1, 7, 64, 65, 100}) {
        const Numbers few = map.multiply(N, codes);
        EXPECT_EQ(few, Numbers(all.begin(), all.begin() + static_cast<long>(N * map.O)))
            << "I " << I << ", O " << O << ", N " << N << (codes ? ", codes" : "");
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
      const Numbers found = map.multiply(N, true);
      ASSERT_EQ(found.size(), N * map.O);
      EXPECT_EQ(found, map.multiply(N, false)) << "I " << I << ", O " << O << ", N " << N;
    }
  }
}

TYPED_TEST(SkinnyGemm, OfCodesServesFewRowsOnHopper) {
  const bool hopper = cuda::detail::runs_sm_90a();
  EXPECT_EQ(!Map<TypeParam>(72, 40).multiply(3, true).empty(), hopper);
  const Map<TypeParam> odd_inputs(36, 40), odd_outputs(40, 36);
  EXPECT_TRUE(odd_inputs.multiply(3, true).empty());
  EXPECT_TRUE(odd_outputs.multiply(3, true).empty());
  const Map<TypeParam> map(72, 40);
  constexpr std::size_t N = fp8_weight_rows + 1;
  const Array<TypeParam> x(N, 72, normal_numbers(N * 72, 2)), y(N, 40);
  EXPECT_FALSE(native_fp8_weight_forward<TypeParam>(map.context, x.matrix(), map.w.matrix(),
                                                    map.rounded, {}, y.matrix(), {}));
}

}  // namespace
}  // namespace tern::ops
