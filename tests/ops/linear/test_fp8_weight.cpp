// Weights rounded to E4M3 with a scale per row: numbers and codes compared with PyTorch's rounding
// (tests/golden/make_fp8.py) and, in every storage type, with base/fp8.hpp; products with those of
// the rounded weight.
#include "ops/linear/fp8_weight.hpp"

#include <cmath>

#include "base/fp8.hpp"
#include "golden/golden.hpp"
#include "ops/check.hpp"

namespace tern::test {
namespace {

/// A weight (O, I), rounded in place, and its codes in the order of the columns.
template <class T>
struct Rounded {
  std::size_t O, I;
  Array<T> w;
  Arena arena;
  ops::Fp8Rows to;

  Rounded(std::size_t o, std::size_t i, const Numbers& numbers)
      : O(o),
        I(i),
        w(O, I, numbers),
        arena(O * (I + 16) + 4 * O + 1024),
        to(arena, "w", Term::parameters, O, I) {
    Kokkos::deep_copy(Vector<std::uint8_t>(to.codes.data(), to.codes.size()), std::uint8_t{255});
    round();
  }
  void round() { ops::run(portable_context(), ops::Fp8RoundRows<T>{.x = w.matrix(), .to = to}); }
  std::vector<float> undo() const { return on_host(to.undo); }
  std::vector<std::uint8_t> codes() const {
    const std::size_t width = to.codes.extent(1);
    const std::vector<std::uint8_t> stored = on_host(to.codes);
    std::vector<std::uint8_t> result(stored.size());
    for (std::size_t row = 0; row < O; ++row)
      for (std::size_t i = 0; i < width; ++i)
        result[row * width + i] = stored[row * width + ops::code_place(i)];
    return result;
  }
};

TEST(Fp8Rows, OrdersAGroupAsLanesReadIt) {
  for (std::size_t lane = 0; lane < 4; ++lane)
    for (const std::size_t group : {0, 48}) {
      std::size_t place = group + 4 * lane;
      for (const std::size_t column : {2 * lane, 2 * lane + 8, 2 * lane + 1, 2 * lane + 9})
        EXPECT_EQ(ops::code_place(group + column), place++) << column;
    }
}

/// Each row holds numbers of all magnitudes up to the format's largest, times a power of two.
TEST(Fp8Rows, RoundsAsTorch) {
  const Golden file(std::string(TERN_SOURCE_DIR) + "/tests/golden/fp8.h5");
  const std::vector<double> values = file.numbers("e4m3/values"),
                            rounded = file.numbers("e4m3/rounded");
  Numbers row{448}, wanted{448};
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::abs(values[i]) <= 448) row.push_back(values[i]), wanted.push_back(rounded[i]);
  ASSERT_GT(row.size(), 1500u);
  const std::vector<float> factors{1, 0x1p-9f, 0x1p13f};
  Numbers numbers;
  for (const float factor : factors)
    for (const long double number : row) numbers.push_back(factor * number);
  const Rounded<float> weight(factors.size(), row.size(), numbers);
  EXPECT_EQ(weight.undo(), factors);
  const Numbers found = weight.w.get();
  const auto codes = weight.codes();
  for (std::size_t k = 0; k < factors.size(); ++k)
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(found[k * row.size() + i], factors[k] * wanted[i]) << row[i];
      EXPECT_EQ(decode<E4M3>(codes[k * weight.to.codes.extent(1) + i]),
                static_cast<float>(wanted[i]));
    }
}

template <class T>
class Fp8Weights : public testing::Test {};
using Storages = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(Fp8Weights, Storages, );

/// Rows of very different size; 37 columns fill two groups and part of a third.
Numbers uneven(std::size_t O, std::size_t I) {
  Numbers numbers = normal_numbers(O * I, 3);
  for (std::size_t row = 0; row < O; ++row)
    for (std::size_t i = 0; i < I; ++i) {
      auto& number = numbers[row * I + i];
      number = row == 0 ? 0 : number * std::exp2(9 - 2.0 * static_cast<double>(row));
    }
  return numbers;
}

TYPED_TEST(Fp8Weights, AreCodesTimesTheScaleOfTheirRow) {
  constexpr std::size_t O = 13, I = 37;
  const Numbers given = rounded<TypeParam>(uneven(O, I));
  Rounded<TypeParam> weight(O, I, given);
  const Numbers numbers = weight.w.get();
  const auto codes = weight.codes();
  const auto undo = weight.undo();
  ASSERT_EQ(codes.size(), O * 48);
  for (std::size_t row = 0; row < O; ++row) {
    float most = 0;
    for (std::size_t i = 0; i < I; ++i)
      most = std::max(most, std::abs(static_cast<float>(given[row * I + i])));
    float scale = scale_for<E4M3>(most);
    if (std::is_same_v<TypeParam, fp16>) scale = std::min(scale, 0x1p15f);
    EXPECT_EQ(undo[row], 1 / scale) << row;
    for (std::size_t i = 0; i < 48; ++i) {
      const float number = decode<E4M3>(codes[row * 48 + i]) * undo[row];
      if (i >= I) {
        EXPECT_EQ(number, 0) << row;
        continue;
      }
      EXPECT_EQ(numbers[row * I + i], number) << row << ", " << i;
      EXPECT_EQ(number, round_to<E4M3>(static_cast<float>(given[row * I + i]) * scale) / scale);
    }
  }
  weight.round();
  EXPECT_EQ(weight.w.get(), numbers);
}

TYPED_TEST(Fp8Weights, OfARowThatIsNotFiniteAreNaN) {
  constexpr std::size_t O = 3, I = 20;
  Numbers numbers = normal_numbers(O * I, 5);
  numbers[I + 4] = std::numeric_limits<double>::infinity();
  numbers[2 * I + 4] = std::nan("");
  const Rounded<TypeParam> weight(O, I, numbers);
  const Numbers found = weight.w.get();
  for (std::size_t i = 0; i < O * I; ++i) EXPECT_EQ(std::isnan(found[i]), i >= I) << i;
  EXPECT_TRUE(std::isnan(weight.undo()[1]) && std::isnan(weight.undo()[2]));
}

TYPED_TEST(Fp8Weights, MultiplyAsTheirNumbers) {
  using T = TypeParam;
  constexpr std::size_t N = 5, I = 40, O = 24;
  const Rounded<T> weight(O, I, normal_numbers(O * I, 1, 0.1));
  const Array<T> x(N, I, normal_numbers(N * I, 2)), added(N, O, normal_numbers(N * O, 3)),
      bias(1, O, normal_numbers(O, 4)), y(N, O), wanted(N, O);
  for (const bool more : {false, true}) {
    const Vector<const T> b = more ? bias.vector() : Vector<T>();
    const Matrix<const T> a = more ? added.matrix() : Matrix<T>();
    const auto& context = portable_context();
    ops::run(
        context,
        ops::LinearForward<T>{
            .x = x.matrix(), .w = weight.w.matrix(), .bias = b, .y = wanted.matrix(), .added = a});
    ops::run(context, ops::Fp8WeightForward<T>{.x = x.matrix(),
                                               .w = weight.w.matrix(),
                                               .rounded = weight.to,
                                               .bias = b,
                                               .y = y.matrix(),
                                               .added = a});
    EXPECT_EQ(y.get(), wanted.get());
  }
}

TYPED_TEST(Fp8Weights, MultiplyRoundedInputsAsTheirNumbers) {
  using T = TypeParam;
  constexpr std::size_t N = 5, I = 40, O = 24;
  const Rounded<T> weight(O, I, normal_numbers(O * I, 1, 0.1)), x(N, I, normal_numbers(N * I, 2));
  const Array<T> y(N, O), wanted(N, O);
  ops::run(portable_context(),
           ops::LinearForward<T>{.x = x.w.matrix(), .w = weight.w.matrix(), .y = wanted.matrix()});
  ops::run(portable_context(), ops::Fp8WeightForward<T>{.x = x.w.matrix(),
                                                        .w = weight.w.matrix(),
                                                        .rounded = weight.to,
                                                        .y = y.matrix(),
                                                        .coded = x.to});
  EXPECT_EQ(y.get(), wanted.get());
}

TYPED_TEST(Fp8Weights, OfANormAreItsRoundedResult) {
  using T = TypeParam;
  constexpr std::size_t N = 5, D = 40;
  const Array<T> x(N, D, normal_numbers(N * D, 1, 3)), gain(1, D, normal_numbers(D, 2)), y(N, D);
  const Array<Accumulate<T>> rstd(1, N);
  ops::NormForward<T> call{.kind = ops::Norm::rmsnorm,
                           .x = x.matrix(),
                           .gain = gain.vector(),
                           .eps = 1e-6,
                           .y = y.matrix(),
                           .rstd = rstd.vector()};
  ops::run(portable_context(), call);
  const Rounded<T> wanted(N, D, y.get()), found(N, D, Numbers(N * D));
  call.coded = found.to;
  ops::run(portable_context(), call);
  EXPECT_EQ(y.get(), wanted.w.get());
  EXPECT_EQ(found.codes(), wanted.codes());
  EXPECT_EQ(found.undo(), wanted.undo());
}

}  // namespace
}  // namespace tern::test
