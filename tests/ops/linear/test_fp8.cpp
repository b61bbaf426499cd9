// The 8-bit formats and linear maps multiplied in them, compared with PyTorch
// (tests/golden/make_fp8.py).
#include "base/fp8.hpp"
#include "golden/golden.hpp"
#include "ops/check.hpp"
#include "ops/ops.hpp"
#include "roundoff.hpp"

namespace tern::test {
namespace {

Golden golden() { return Golden(std::string(TERN_SOURCE_DIR) + "/tests/golden/fp8.h5"); }

template <class Format>
class Fp8Format : public testing::Test {
 protected:
  std::vector<double> numbers(const std::string& name) const {
    return file.numbers((std::is_same_v<Format, E4M3> ? "e4m3/" : "e5m2/") + name);
  }
  const Golden file = golden();
};
using Formats = testing::Types<E4M3, E5M2>;
TYPED_TEST_SUITE(Fp8Format, Formats, );

TYPED_TEST(Fp8Format, EveryNumberOfTheFormatStays) {
  const std::vector<double> codes = this->numbers("codes");
  ASSERT_EQ(codes.size(), 256u);
  double largest = 0;
  for (const double code : codes) {
    if (!std::isfinite(code)) continue;
    const float number = static_cast<float>(code);
    EXPECT_EQ(round_to<TypeParam>(number), number);
    EXPECT_EQ(std::signbit(round_to<TypeParam>(number)), std::signbit(number));
    largest = std::max(largest, code);
  }
  EXPECT_EQ(largest, TypeParam::largest);
}

TYPED_TEST(Fp8Format, RoundsAsTorch) {
  const std::vector<double> values = this->numbers("values"), rounded = this->numbers("rounded");
  ASSERT_GT(values.size(), 1700u);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(round_to<TypeParam>(static_cast<float>(values[i])), static_cast<float>(rounded[i]))
        << values[i];
  EXPECT_TRUE(std::isnan(round_to<TypeParam>(std::nanf(""))));
}

TYPED_TEST(Fp8Format, CodesAreTorchs) {
  const std::vector<double> codes = this->numbers("codes");
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    const float number = decode<TypeParam>(code);
    if (std::isfinite(codes[i])) {
      EXPECT_EQ(number, static_cast<float>(codes[i])) << i;
      EXPECT_EQ(encode<TypeParam>(number), code);
    } else {
      EXPECT_TRUE(std::isnan(number)) << i;
    }
  }
  EXPECT_EQ(encode<TypeParam>(std::nanf("")), 0x7f);
}

TYPED_TEST(Fp8Format, ScalesByTheLargestPowerOfTwoThatFits) {
  constexpr float largest = TypeParam::largest;
  for (float m = 3e38f; m > 1e-13f; m *= 0.83f) {
    const float scale = scale_for<TypeParam>(m);
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5f) << m;
    EXPECT_LE(static_cast<double>(scale) * m, largest) << m;
    EXPECT_GT(2.0 * scale * m, largest) << m;
    EXPECT_EQ(static_cast<double>(scale) * undo_scale(scale), 1) << m;
  }
  EXPECT_EQ(scale_for<TypeParam>(largest), 1);
  EXPECT_EQ(scale_for<TypeParam>(std::nextafter(largest, 1e9f)), 0.5f);
  for (const float m : {0.0f, 1e-44f, 1e-30f}) EXPECT_EQ(scale_for<TypeParam>(m), 0x1p60f) << m;
  for (const float m : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_TRUE(std::isnan(scale_for<TypeParam>(m)));
    EXPECT_TRUE(std::isnan(undo_scale(scale_for<TypeParam>(m))));
  }
}

/// A matrix in fp8 with its memory.
struct Rounded {
  Arena arena;
  ops::Fp8Matrix matrix;

  Rounded(ops::Fp8Format format, std::size_t N, std::size_t C) : arena(2 * N * C + 2048) {
    const auto bytes = [&](std::size_t rows, std::size_t columns) {
      return arena.matrix<std::uint8_t>("codes", Term::workspace, rows, columns);
    };
    matrix = {format, bytes(N, C), bytes(C, N), ops::Fp8Scale(arena, "scale", Term::workspace)};
  }
  template <class T>
  void round(const Matrix<T>& values, ops::Scaling scaling = ops::Scaling::current) {
    ops::run(portable_context(),
             ops::Fp8Round<T>{.values = values, .to = matrix, .scaling = scaling});
  }
  Vector<std::uint32_t> count_saturated() {
    matrix.scale.saturated = arena.vector<std::uint32_t>("saturated", Term::workspace, 1);
    return matrix.scale.saturated;
  }
  /// The numbers of one of the layouts.
  Numbers get(bool transposed = false) const {
    const Array<float> to(matrix.straight.extent(0), matrix.straight.extent(1));
    ops::run(portable_context(),
             ops::Fp8Numbers<float>{.of = matrix, .transposed = transposed, .to = to.matrix()});
    return to.get();
  }
};

/// A map's operands and results in T, with the memory it needs.
template <class T>
struct Map {
  using A = Accumulate<T>;
  using Workspace = ops::Fp8Workspace<T>;
  std::size_t N, I, O;
  Array<T> x, w, dy, bias, y{N, O}, dx{N, I};
  Array<A> dw{O, I, Numbers(O* I)};
  Rounded qx{ops::Fp8Format::e4m3, N, I}, qw{ops::Fp8Format::e4m3, O, I},
      qdy{ops::Fp8Format::e5m2, N, O};
  typename Workspace::Sizes sizes = sizes_of(N, I, O);
  Arena arena{sizes.values * sizeof(T) + sizes.gradient + sizes.input + sizes.weights + 4096};
  Workspace work{arena, sizes};

  static typename Workspace::Sizes sizes_of(std::size_t n, std::size_t i, std::size_t o) {
    typename Workspace::Sizes sizes;
    sizes.raise(n, i, o, true);
    return sizes;
  }
  Map(std::size_t n, std::size_t i, std::size_t o, const Numbers& x_, const Numbers& w_,
      const Numbers& dy_)
      : N(n), I(i), O(o), x(N, I, x_), w(O, I, w_), dy(N, O, dy_), bias(normal_numbers(O, 9)) {}
  Map(std::size_t n, std::size_t i, std::size_t o)
      : Map(n, i, o, normal_numbers(n * i, 1), normal_numbers(o * i, 2, 0.3),
            normal_numbers(n * o, 3, 1e-4)) {}

  void forward(bool biased, ops::Write write = ops::Write::overwrite) {
    qx.round(x.matrix()), qw.round(w.matrix());
    ops::run(portable_context(), ops::Fp8LinearForward<T>{
                                     .workspace = work.values(),
                                     .x = qx.matrix,
                                     .w = qw.matrix,
                                     .bias = biased ? bias.vector() : Vector<T>(),
                                     .y = y.matrix(),
                                     .added = write == ops::Write::add ? y.matrix() : Matrix<T>()});
  }
  void backward(ops::Write write = ops::Write::add) {
    qx.round(x.matrix()), qw.round(w.matrix()), qdy.round(dy.matrix());
    ops::run(portable_context(), ops::Fp8LinearBackwardWeight<T>{.workspace = work.values(),
                                                                 .dy = qdy.matrix,
                                                                 .x = qx.matrix,
                                                                 .dw = dw.matrix(),
                                                                 .write = write});
    ops::run(portable_context(),
             ops::Fp8LinearBackwardInput<T>{
                 .workspace = work.values(), .dy = qdy.matrix, .w = qw.matrix, .dx = dx.matrix()});
  }
};

Numbers numbers_of(const Golden& file, const std::string& name) {
  const std::vector<double> values = file.numbers(name);
  return {values.begin(), values.end()};
}

template <class T>
void expect_golden(const std::string& name) {
  SCOPED_TRACE(name + " " + type_name<T>());
  const Golden file = golden();
  const auto shape = file.shape(name + "/w");
  const auto read = [&](const char* what) { return numbers_of(file, name + "/" + what); };
  Map<T> map(file.shape(name + "/x")[0], shape[1], shape[0], read("x"), read("w"), read("dy"));
  map.forward(false);
  map.backward();
  constexpr double roundoff = std::numeric_limits<Accumulate<T>>::epsilon();
  const double stored = is_half<T> ? test::roundoff<T>() : 4 * roundoff;
  EXPECT_LE(relative_error(map.y.get(), read("y")), stored);
  EXPECT_LE(relative_error(map.dx.get(), read("dx")), stored);
  EXPECT_LE(relative_error(map.dw.get(), read("dw")), 4 * roundoff);
  const Numbers y = map.y.get(), dw = map.dw.get();
  map.forward(false);
  map.dw.set(Numbers(dw.size()));
  map.backward();
  EXPECT_EQ(map.y.get(), y);
  EXPECT_EQ(map.dw.get(), dw);
}

TEST(Fp8Linear, AsTheRoundedOperandsInFloat64) {
  for (const char* name : {"wide", "deep"}) {
    expect_golden<double>(name);
    expect_golden<float>(name);
    expect_golden<bf16>(name);
  }
}

/// Gradients of a head in chunks of 16 rows; the last one has 8 and stays in T.
template <class T>
void expect_golden_head() {
  SCOPED_TRACE(type_name<T>());
  const Golden file = golden();
  const auto read = [&](const char* what) { return numbers_of(file, std::string("head/") + what); };
  const std::size_t N = file.shape("head/x")[0], D = file.shape("head/x")[1],
                    V = file.shape("head/w")[0], C = 16;
  const auto sizes = Map<T>::sizes_of(C, D, V);
  Arena arena(sizes.values * sizeof(T) + sizes.gradient + sizes.input + sizes.weights + 8192);
  const ops::Fp8Workspace<T> work(arena, sizes);
  const Array<T> x(N, D, read("x")), w(V, D, read("w")), logits(C, V), dx(N, D);
  const Array<std::int32_t> targets(read("targets"));
  const Array<Accumulate<T>> weights(Numbers(N, 1.0L / static_cast<long double>(N))), losses(1, N),
      dw(V, D, Numbers(V * D));
  ops::run(portable_context(), ops::HeadLossBackward<T>{.x = x.matrix(),
                                                        .w = w.matrix(),
                                                        .targets = targets.vector(),
                                                        .weights = weights.vector(),
                                                        .logits = logits.matrix(),
                                                        .losses = losses.vector(),
                                                        .dx = dx.matrix(),
                                                        .dw = dw.matrix(),
                                                        .fp8 = {arena, work, C}});
  // One of two neighboring numbers of 2 bits, as logits are rounded, in a few places.
  const double bar = is_half<T> ? 0.05 : std::is_same_v<T, float> ? 0.01 : 1e-12;
  EXPECT_LE(relative_error(losses.get(), read("losses")), is_half<T> ? 0.01 : 1e-6);
  EXPECT_LE(relative_error(dx.get(), read("dx")), bar);
  EXPECT_LE(relative_error(dw.get(), read("dw")), bar);
}

TEST(Fp8Head, AsTheRoundedOperandsInFloat64) {
  expect_golden_head<double>();
  expect_golden_head<float>();
  expect_golden_head<bf16>();
}

TEST(Fp8Linear, BiasAndSums) {
  Map<float> map(48, 32, 16);
  map.forward(false);
  const Numbers plain = map.y.get(), bias = map.bias.get();
  map.forward(true, ops::Write::add);
  const Numbers twice = map.y.get();
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_NEAR(static_cast<double>(twice[i]), static_cast<double>(2 * plain[i] + bias[i % map.O]),
                1e-4);
  map.backward();
  const Numbers once = map.dw.get();
  map.backward();
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_NEAR(static_cast<double>(map.dw.get()[i] / once[i]), 2, 1e-4);
}

TEST(Fp8Linear, ZerosGiveZeros) {
  Map<bf16> map(16, 32, 48, Numbers(16 * 32), Numbers(48 * 32), Numbers(16 * 48));
  map.forward(false);
  map.backward();
  EXPECT_EQ(map.y.get(), Numbers(16 * 48));
  EXPECT_EQ(map.dx.get(), Numbers(16 * 32));
  EXPECT_EQ(map.dw.get(), Numbers(48 * 32));
}

TEST(Fp8Linear, GradientOfTheWeightIsAddedOrOverwritten) {
  for (const std::size_t N : {std::size_t{0}, std::size_t{16}}) {
    Map<double> map(N, 32, 48);
    const Numbers before = normal_numbers(48 * 32, 5);
    map.dw.set(before);
    map.backward(ops::Write::add);
    const Numbers added = map.dw.get();
    map.backward(ops::Write::overwrite);
    const Numbers alone = map.dw.get();
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(added[i], before[i] + alone[i], 1e-14) << "N " << N << ", " << i;
      if (N == 0) {
        EXPECT_EQ(alone[i], 0) << i;
      }
    }
  }
}

bool all_nan(const Numbers& values) {
  return std::all_of(values.begin(), values.end(), [](long double v) { return std::isnan(v); });
}

TEST(Fp8Linear, WhatIsNotFiniteIsNotLost) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    Map<bf16> of_x(16, 32, 48), of_w(16, 32, 48), of_dy(16, 32, 48);
    for (const auto& [array, n] :
         {std::pair{&of_x.x, 16 * 32}, {&of_w.w, 48 * 32}, {&of_dy.dy, 16 * 48}}) {
      Numbers values = array->get();
      ASSERT_EQ(values.size(), static_cast<std::size_t>(n));
      values[static_cast<std::size_t>(n) - 7] = bad;
      array->set(values);
    }
    of_x.forward(true), of_w.forward(true);
    EXPECT_TRUE(all_nan(of_x.y.get()) && all_nan(of_w.y.get())) << bad;
    of_x.backward();
    of_w.backward();
    of_dy.backward();
    EXPECT_TRUE(all_nan(of_x.dw.get()) && all_nan(of_w.dx.get())) << bad;
    EXPECT_TRUE(all_nan(of_dy.dw.get()) && all_nan(of_dy.dx.get())) << bad;
  }
}

TEST(Fp8Linear, WrongShapesAndTooLittleSpaceAreRefused) {
  Map<float> map(32, 16, 16);
  map.work = ops::Fp8Workspace<float>(Vector<float>(map.work.values().data(), 600));
  EXPECT_ANY_THROW(map.forward(true));
  Rounded narrow(ops::Fp8Format::e4m3, 32, 32);
  EXPECT_ANY_THROW(
      ops::run(portable_context(), ops::Fp8LinearForward<float>{.workspace = map.work.values(),
                                                                .x = narrow.matrix,
                                                                .w = map.qw.matrix,
                                                                .y = map.y.matrix()}));
  Rounded odd(ops::Fp8Format::e4m3, 32, 24);
  EXPECT_ANY_THROW(odd.round(Array<float>(32, 24).matrix()));
}

/// Numbers of the format nearest to values under the scale of `magnitude`.
template <class Format>
Numbers nearest(const Numbers& values, float magnitude) {
  const float scale = scale_for<Format>(magnitude);
  Numbers result;
  for (const long double value : values)
    result.push_back(round_to<Format>(static_cast<float>(value) * scale) / scale);
  return result;
}

TEST(Fp8Round, BothLayoutsHoldTheNearestNumbers) {
  const std::size_t N = 48, C = 80;
  const Array<float> x(N, C, normal_numbers(N * C, 5, 3e-3));
  Rounded to(ops::Fp8Format::e5m2, N, C);
  to.round(x.matrix());
  float most = 0;
  for (const long double value : x.get())
    most = std::max(most, std::abs(static_cast<float>(value)));
  EXPECT_EQ(to.get(), nearest<E5M2>(x.get(), most));
  EXPECT_EQ(to.get(true), to.get());
}

// The scale of earlier values has a factor of two of headroom; beyond it numbers saturate.
TEST(Fp8Round, ScalesOfEarlierValues) {
  const std::size_t N = 16, C = 32;
  Numbers small = normal_numbers(N * C, 6), large = small;
  small[7] = 8, large[7] = 15.5L, large[8] = 40;
  for (std::size_t i = 9; i < large.size(); ++i)  // keep the largest magnitudes where they are
    small[i] = large[i] = std::clamp(small[i], -7.0L, 7.0L);
  Rounded to(ops::Fp8Format::e4m3, N, C);
  const Vector<std::uint32_t> saturated = to.count_saturated();
  to.round(Array<float>(N, C, small).matrix());
  const Numbers own = to.get();
  EXPECT_EQ(own, nearest<E4M3>(small, 8));
  const Array<float> later(N, C, large);
  to.round(later.matrix(), ops::Scaling::earlier);
  EXPECT_EQ(to.get(), nearest<E4M3>(large, 16));
  EXPECT_EQ(static_cast<double>(to.get()[8]), 16 * 1.75);  // saturated
  EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), saturated)(0), 1u);
  to.round(later.matrix(), ops::Scaling::known);
  EXPECT_EQ(to.get(), nearest<E4M3>(large, 8));
  to.round(Array<float>(N, C, small).matrix(), ops::Scaling::largest);
  EXPECT_EQ(to.get(), own);
  to.round(later.matrix(), ops::Scaling::largest);
  EXPECT_EQ(to.get(), nearest<E4M3>(large, 40));
  to.round(Array<float>(N, C, small).matrix(), ops::Scaling::largest);
  EXPECT_EQ(to.get(), nearest<E4M3>(small, 40));
}

// An infinity must not pass for the largest number.
TEST(Fp8Round, InfinitiesUnderAnEarlierScaleAreNan) {
  const std::size_t N = 16, C = 16;
  Numbers values = normal_numbers(N * C, 6);
  Rounded to(ops::Fp8Format::e5m2, N, C);
  to.round(Array<float>(N, C, values).matrix());
  values[3] = HUGE_VAL, values[5] = -HUGE_VAL;
  to.round(Array<float>(N, C, values).matrix(), ops::Scaling::earlier);
  const Numbers read = to.get();
  for (std::size_t i = 0; i < read.size(); ++i)
    EXPECT_EQ(std::isnan(read[i]), i == 3 || i == 5) << i;
}

}  // namespace
}  // namespace tern::test
