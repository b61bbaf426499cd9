// Rotary embedding compared with Transformers' Llama, in every storage type; its inverse; long
// contexts.
#include <gtest/gtest.h>

#include "attention_reference.hpp"
#include "base/error.hpp"
#include "golden/golden.hpp"
#include "ops/ops.hpp"
#include "roundoff.hpp"

namespace tern {
namespace {
using namespace test;
using ops::Direction;

template <class T>
class Rotary : public testing::Test {
 protected:
  using A = Accumulate<T>;
  /// x rotated with a table of `base`; each call uses a new tensor with the same numbers.
  std::vector<double> turned(const std::vector<double>& x, const std::vector<std::size_t>& shape,
                             double base, int first, Direction direction) {
    Tensor<T> tensor(static_cast<int>(shape[0]), static_cast<int>(shape[1]),
                     static_cast<int>(shape[2]), static_cast<int>(shape[3]), 4, 6);
    Statistics<A> table(first + tensor.tokens, tensor.size);
    tensor.host = x;
    tensor.upload();
    rounded_input = tensor.host;
    ops::run(context, ops::RotaryTable<A>{.base = base, .table = table.view()});
    ops::run(context, ops::Rotary<T>{.x = tensor.view(),
                                     .table = table.view(),
                                     .positions = {first},
                                     .direction = direction});
    context.fence("test");
    EXPECT_TRUE(tensor.surroundings_untouched());
    return tensor.download();
  }
  /// The formula, with cosines and sines in A.
  static std::vector<double> formula(std::vector<double> x, const std::vector<std::size_t>& shape,
                                     double base, int first) {
    const std::size_t size = shape[3], half = size / 2;
    for (std::size_t row = 0; row < x.size() / size; ++row)
      for (std::size_t i = 0; i < half; ++i) {
        const double position = static_cast<double>(first + row / shape[2] % shape[1]);
        const double angle =
            position * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
        const A c = static_cast<A>(std::cos(angle)), s = static_cast<A>(std::sin(angle));
        double &low = x[row * size + i], &high = x[row * size + half + i];
        const A a = static_cast<A>(low), b = static_cast<A>(high);
        low = static_cast<double>(static_cast<A>(static_cast<T>(a * c - b * s)));
        high = static_cast<double>(static_cast<A>(static_cast<T>(b * c + a * s)));
      }
    return x;
  }
  ops::Context context;
  std::vector<double> rounded_input;
};
using StorageTypes = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(Rotary, StorageTypes);

TYPED_TEST(Rotary, EqualsTransformersForwardAndBackward) {
  const Golden golden(TERN_SOURCE_DIR "/tests/golden/attention.h5");
  for (const std::string group : {"rotary/0/", "rotary/1/"}) {
    SCOPED_TRACE(group);
    const auto shape = golden.shape(group + "x");
    const double base = golden.number(group + "base");
    const int first = static_cast<int>(golden.number(group + "first"));
    const auto x = golden.numbers(group + "x"), y = golden.numbers(group + "y");
    const auto dy = golden.numbers(group + "dy"), dx = golden.numbers(group + "dx");
    const double roundoff = std::is_same_v<TypeParam, double>  ? 1e-14
                            : std::is_same_v<TypeParam, float> ? 1e-7
                                                               : 0;
    const auto forward = this->turned(x, shape, base, first, Direction::forward);
    EXPECT_LE(
        attention_error(forward, y),
        2 * attention_error(this->formula(this->rounded_input, shape, base, first), y) + roundoff);
    const auto backward = this->turned(dy, shape, base, first, Direction::backward);
    EXPECT_LE(attention_error(backward, dx),
              is_half<TypeParam> ? test::roundoff<TypeParam>() : 2 * roundoff);
  }
}

TYPED_TEST(Rotary, BackwardIsTheInverse) {
  const std::vector<std::size_t> shape{2, 9, 3, 10};
  std::vector<double> x(2 * 9 * 3 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
  const auto y = this->turned(x, shape, 10000, 1000, Direction::forward);
  const auto given = this->rounded_input;
  const double epsilon = 2 * test::roundoff<TypeParam>();
  EXPECT_GT(attention_error(y, given), 0.1);
  EXPECT_LT(attention_error(this->turned(y, shape, 10000, 1000, Direction::backward), given),
            4 * epsilon);
}

/// Each row is treated as in a sequence of its own that begins at its position.
TYPED_TEST(Rotary, RowsMayNameTheirPositions) {
  using T = TypeParam;
  const std::vector<std::size_t> shape{2, 9, 3, 10};
  const std::vector<std::int32_t> named{5, 0, 1, 49, 7, 7, 2, 3, 4, 30, 6, 0, 0, 8, 9, 1, 1, 12};
  constexpr std::size_t row = 3 * 10;
  std::vector<double> x(named.size() * row);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
  const Kokkos::View<std::int32_t*, DeviceMemory> positions("positions", named.size());
  const auto mirror = Kokkos::create_mirror_view(positions);
  std::copy(named.begin(), named.end(), mirror.data());
  Kokkos::deep_copy(positions, mirror);
  Statistics<Accumulate<T>> table(50, 10);
  ops::run(this->context, ops::RotaryTable<Accumulate<T>>{.base = 10000, .table = table.view()});
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    Tensor<T> tensor(2, 9, 3, 10, 4, 6);
    tensor.host = x;
    tensor.upload();
    ops::run(this->context, ops::Rotary<T>{.x = tensor.view(),
                                           .table = table.view(),
                                           .positions = {0, positions},
                                           .direction = direction});
    this->context.fence("test");
    EXPECT_TRUE(tensor.surroundings_untouched());
    const std::vector<double> turned = tensor.download();
    for (std::size_t r = 0; r < named.size(); ++r) {
      const auto first = static_cast<std::ptrdiff_t>(r * row);
      const auto of = [&](const std::vector<double>& all) {
        return std::vector<double>(all.begin() + first, all.begin() + first + row);
      };
      EXPECT_EQ(of(turned), this->turned(of(x), {1, 1, 3, 10}, 10000, named[r], direction)) << r;
    }
  }
}

TEST(RotaryTable, IsExactFarOut) {
  const int context_length = 100000, size = 8;
  Statistics<float> table(context_length, size);
  ops::Context context;
  ops::run(context, ops::RotaryTable<float>{.base = 1e6, .table = table.view()});
  context.fence("test");
  const auto values = table.download();
  for (int position : {0, 1, 4095, 99999})
    for (int i = 0; i < size / 2; ++i) {
      const long double angle =
          position * std::pow(1e6L, -static_cast<long double>(i) / (size / 2));
      EXPECT_NEAR(values[position * size + i], static_cast<double>(std::cos(angle)), 1e-7);
      EXPECT_NEAR(values[position * size + size / 2 + i], static_cast<double>(std::sin(angle)),
                  1e-7);
    }
}

TEST(RotaryTable, TooShortIsAnError) {
  Tensor<float> x(1, 5, 1, 4);
  Statistics<float> table(8, 4);
  ops::Context context;
  EXPECT_THROW(ops::run(context, ops::Rotary<float>{.x = x.view(),
                                                    .table = table.view(),
                                                    .positions = {4},
                                                    .direction = Direction::forward}),
               InternalError);
}

}  // namespace
}  // namespace tern
