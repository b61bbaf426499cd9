// The 8-bit formats and linear maps multiplied in them, compared with PyTorch
// (tests/golden/make_fp8.py).
#include "base/fp8.hpp"
#include "golden/golden.hpp"
#include "ops/check.hpp"
#include "ops/ops.hpp"

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

/// A map's operands and results in T, with the memory it needs.
template <class T>
struct Map {
  using A = Accumulate<T>;
  std::size_t N, I, O;
  Array<T> x, w, dy, bias, y{N, O}, dx{N, I};
  Array<A> dw{O, I, Numbers(O*I)}, dbias{1, O, Numbers(O)};
  std::size_t elements =
      std::max(ops::Fp8Workspace<T>::forward(N, I, O), ops::Fp8Workspace<T>::backward(N, I, O));
  Arena arena{elements * sizeof(T) + 4096};
  ops::Fp8Workspace<T> work{arena, elements};

  Map(std::size_t n, std::size_t i, std::size_t o, const Numbers& x_, const Numbers& w_,
      const Numbers& dy_)
      : N(n), I(i), O(o), x(N, I, x_), w(O, I, w_), dy(N, O, dy_), bias(normal_numbers(O, 9)) {}
  Map(std::size_t n, std::size_t i, std::size_t o)
      : Map(n, i, o, normal_numbers(n * i, 1), normal_numbers(o * i, 2, 0.3),
            normal_numbers(n * o, 3, 1e-4)) {}

  void forward(bool biased, ops::Write write = ops::Write::overwrite) {
    ops::fp8_linear_forward<T>(portable_context(), work, x.matrix(), w.matrix(),
                               biased ? bias.vector() : Vector<T>(), y.matrix(), write);
  }
  void backward(const Matrix<T>& to) {
    ops::fp8_linear_backward<T>(portable_context(), {.work = work,
                                                     .dy = dy.matrix(),
                                                     .x = x.matrix(),
                                                     .w = w.matrix(),
                                                     .dx = to,
                                                     .dw = dw.matrix(),
                                                     .dbias = dbias.vector()});
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
  map.backward(map.dx.matrix());
  constexpr double roundoff = std::numeric_limits<Accumulate<T>>::epsilon();
  const double stored = std::is_same_v<T, bf16> ? 0x1p-8 : 4 * roundoff;
  EXPECT_LE(relative_error(map.y.get(), read("y")), stored);
  EXPECT_LE(relative_error(map.dx.get(), read("dx")), stored);
  EXPECT_LE(relative_error(map.dw.get(), read("dw")), 4 * roundoff);
  EXPECT_LE(relative_error(map.dbias.get(), read("dbias")), 4 * roundoff);
  const Numbers y = map.y.get(), dw = map.dw.get();
  map.forward(false);
  map.dw.set(Numbers(dw.size()));
  map.backward(map.dx.matrix());
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

TEST(Fp8Linear, BiasAndSums) {
  Map<float> map(48, 32, 16);
  map.forward(false);
  const Numbers plain = map.y.get(), bias = map.bias.get();
  map.forward(true, ops::Write::add);
  const Numbers twice = map.y.get();
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_NEAR(static_cast<double>(twice[i]), static_cast<double>(2 * plain[i] + bias[i % map.O]),
                1e-4);
  map.backward(map.dx.matrix());
  const Numbers once = map.dw.get(), sums = map.dbias.get();
  map.backward(map.dx.matrix());
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_NEAR(static_cast<double>(map.dw.get()[i] / once[i]), 2, 1e-4);
  EXPECT_NEAR(static_cast<double>(map.dbias.get()[3] / sums[3]), 2, 1e-5);
}

TEST(Fp8Linear, GradientMayOverwriteTheInput) {
  Map<bf16> apart(48, 32, 64), over(48, 32, 64);
  apart.backward(apart.dx.matrix());
  over.backward(over.x.matrix());
  EXPECT_EQ(over.x.get(), apart.dx.get());
  EXPECT_EQ(over.dw.get(), apart.dw.get());
}

TEST(Fp8Linear, ZerosGiveZeros) {
  Map<bf16> map(16, 32, 48, Numbers(16 * 32), Numbers(48 * 32), Numbers(16 * 48));
  map.forward(false);
  map.backward(map.dx.matrix());
  EXPECT_EQ(map.y.get(), Numbers(16 * 48));
  EXPECT_EQ(map.dx.get(), Numbers(16 * 32));
  EXPECT_EQ(map.dw.get(), Numbers(48 * 32));
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
    of_x.backward(of_x.dx.matrix());
    of_w.backward(of_w.dx.matrix());
    of_dy.backward(of_dy.dx.matrix());
    EXPECT_TRUE(all_nan(of_x.dw.get()) && all_nan(of_w.dx.get())) << bad;
    EXPECT_TRUE(all_nan(of_dy.dw.get()) && all_nan(of_dy.dx.get())) << bad;
  }
}

// Sizes that are not multiples of 16 are multiplied in T, without a workspace.
TEST(Fp8Linear, OddSizesAreMultipliedInStorage) {
  for (const auto& [n, i, o] :
       {std::array<std::size_t, 3>{33, 32, 48}, {32, 40, 48}, {32, 32, 24}}) {
    Map<bf16> map(n, i, o);
    map.work = {};
    map.forward(true);
    map.backward(map.dx.matrix());
    Map<bf16> plain(n, i, o);
    const auto& context = portable_context();
    ops::linear_forward<bf16>(context, plain.x.matrix(), plain.w.matrix(), plain.bias.vector(),
                              plain.y.matrix());
    ops::linear_backward_weight<bf16>(context, plain.dy.matrix(), plain.x.matrix(),
                                      plain.dw.matrix(), plain.dbias.vector());
    ops::linear_backward_input<bf16>(context, plain.dy.matrix(), plain.w.matrix(),
                                     plain.dx.matrix());
    EXPECT_EQ(map.y.get(), plain.y.get());
    EXPECT_EQ(map.dx.get(), plain.dx.get());
    EXPECT_EQ(map.dw.get(), plain.dw.get());
    EXPECT_EQ(map.dbias.get(), plain.dbias.get());
  }
}

// Magnitudes that one product finds serve the next: the same bits as without.
TEST(Fp8Linear, KnownMagnitudesGiveTheSameBits) {
  Map<bf16> plain(32, 48, 64), kept(32, 48, 64);
  plain.forward(true);
  plain.backward(plain.dx.matrix());
  Arena arena(4096);
  const auto room = [&] { return arena.vector<std::uint32_t>("magnitude", Term::workspace, 1); };
  const ops::Magnitude of_x = room(), of_dy = room();
  const auto& context = portable_context();
  ops::fp8_linear_forward<bf16>(context, kept.work, {kept.x.matrix(), of_x}, kept.w.matrix(),
                                kept.bias.vector(), kept.y.matrix());
  ops::largest_magnitude<bf16>(context, kept.dy.matrix(), of_dy);
  ops::fp8_linear_backward<bf16>(context, {.work = kept.work,
                                           .dy = {kept.dy.matrix(), of_dy, true},
                                           .x = {kept.x.matrix(), of_x, true},
                                           .w = kept.w.matrix(),
                                           .dx = kept.dx.matrix(),
                                           .dw = kept.dw.matrix(),
                                           .dbias = kept.dbias.vector()});
  EXPECT_EQ(plain.y.get(), kept.y.get());
  EXPECT_EQ(plain.dx.get(), kept.dx.get());
  EXPECT_EQ(plain.dw.get(), kept.dw.get());
  EXPECT_EQ(plain.dbias.get(), kept.dbias.get());
}

TEST(Fp8Linear, WrongShapesAndTooLittleSpaceAreRefused) {
  Map<float> map(32, 16, 16);
  map.work.operands = Vector<float>(map.work.operands.data(), 600);
  EXPECT_ANY_THROW(map.forward(true));
  const Array<float> narrow(32, 32);
  EXPECT_ANY_THROW(ops::fp8_linear_forward<float>(portable_context(), map.work, narrow.matrix(),
                                                  map.w.matrix(), {}, map.y.matrix()));
}

}  // namespace
}  // namespace tern::test
