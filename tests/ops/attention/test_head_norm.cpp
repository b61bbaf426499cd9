// Per-head RMSNorm compared with Transformers' Qwen3, in every storage type, forward and backward.
#include <gtest/gtest.h>

#include "attention_reference.hpp"
#include "base/error.hpp"
#include "golden/golden.hpp"
#include "ops/ops.hpp"

namespace tern {
namespace {
using namespace test;

/// Forward and backward of the same numbers.
struct HeadNorm {
  std::vector<double> y, dx, dgain;
};

struct Inputs {
  std::vector<std::size_t> shape;  // (B, T, heads, E)
  std::vector<double> x, dy, gain;
  double eps;
};

Inputs golden_inputs(const Golden& golden, const std::string& group) {
  return {golden.shape(group + "x"), golden.numbers(group + "x"), golden.numbers(group + "dy"),
          golden.numbers(group + "gain"), golden.number(group + "eps")};
}

Inputs random_inputs(std::size_t batch, std::size_t tokens, std::size_t heads, std::size_t size) {
  Tensor<double> x(static_cast<int>(batch), static_cast<int>(tokens), static_cast<int>(heads),
                   static_cast<int>(size));
  Inputs in{{batch, tokens, heads, size}, x.fill(5).host, x.fill(6).host, {}, 1e-6};
  for (std::size_t i = 0; i < size; ++i)
    in.gain.push_back(1 + 0.2 * std::sin(static_cast<double>(i)));
  return in;
}

/// The operation; dgain starts at 1 and is added to.
template <class T>
HeadNorm operation(Inputs& in, Matrix<const Accumulate<T>> table = {},
                   const ops::Positions& positions = {}) {
  using A = Accumulate<T>;
  const auto n = [&](int axis) { return static_cast<int>(in.shape[axis]); };
  ops::Context context;
  Tensor<T> x(n(0), n(1), n(2), n(3), 5, 3), dx(n(0), n(1), n(2), n(3), 0, 1);
  Tensor<T> gain(1, 1, 1, n(3)), y(n(0), n(1), n(2), n(3), 0, 2);
  Tensor<A> dgain(1, 1, 1, n(3));
  const std::size_t rows = in.shape[0] * in.shape[1];
  Statistics<A> rstd(static_cast<int>(rows), n(2)),
      partial(1, static_cast<int>(ops::norm_partials(in.shape[3])));
  x.host = in.x, dx.host = in.dy, gain.host = in.gain;
  std::fill(dgain.host.begin(), dgain.host.end(), 1.0);
  x.upload(), dx.upload(), gain.upload(), y.upload(), dgain.upload();
  in.x = x.host, in.dy = dx.host, in.gain = gain.host;  // as rounded
  const Vector<A> r(rstd.data.data(), rstd.data.size()),
      sums(partial.data.data(), partial.data.size());
  const Vector<T> scale(gain.view().data(), in.shape[3]);
  ops::run(context, ops::HeadNormForward<T>{.x = x.view(),
                                            .gain = scale,
                                            .eps = in.eps,
                                            .table = table,
                                            .positions = positions,
                                            .y = y.view(),
                                            .rstd = r});
  context.fence("test");
  EXPECT_EQ(x.download(), in.x);
  ops::run(context, ops::HeadNormBackward<T>{.dx = dx.view(),
                                             .x = x.view(),
                                             .gain = scale,
                                             .rstd = r,
                                             .table = table,
                                             .positions = positions,
                                             .dgain = Vector<A>(dgain.view().data(), in.shape[3]),
                                             .partial = sums});
  context.fence("test");
  EXPECT_TRUE(x.surroundings_untouched() && y.surroundings_untouched() &&
              dx.surroundings_untouched());
  HeadNorm result{y.download(), dx.download(), dgain.download()};
  // In place, as where no backward follows.
  ops::run(context, ops::HeadNormForward<T>{.x = x.view(),
                                            .gain = scale,
                                            .eps = in.eps,
                                            .table = table,
                                            .positions = positions,
                                            .y = x.view()});
  context.fence("test");
  EXPECT_EQ(x.download(), result.y);
  for (double& value : result.dgain) value -= 1;
  return result;
}

/// Plain loops with arithmetic in A and results stored in T.
template <class A, class T>
HeadNorm formula(const Inputs& in) {
  const std::size_t size = in.shape[3];
  const auto stored = [](A value) {
    return static_cast<double>(static_cast<A>(static_cast<T>(value)));
  };
  HeadNorm result;
  std::vector<A> dgain(size);
  for (std::size_t row = 0; row < in.x.size(); row += size) {
    A squares = 0, mean = 0;
    for (std::size_t i = 0; i < size; ++i)
      squares += static_cast<A>(in.x[row + i]) * static_cast<A>(in.x[row + i]);
    const A r = 1 / std::sqrt(squares / static_cast<A>(size) + static_cast<A>(in.eps));
    for (std::size_t i = 0; i < size; ++i)
      mean += static_cast<A>(in.dy[row + i]) * static_cast<A>(in.gain[i]) *
              static_cast<A>(in.x[row + i]) * r / static_cast<A>(size);
    for (std::size_t i = 0; i < size; ++i) {
      const A xhat = static_cast<A>(in.x[row + i]) * r, dy = static_cast<A>(in.dy[row + i]),
              gain = static_cast<A>(in.gain[i]);
      result.y.push_back(stored(xhat * gain));
      result.dx.push_back(stored(r * (dy * gain - xhat * mean)));
      dgain[i] += dy * xhat;
    }
  }
  for (const A value : dgain) result.dgain.push_back(static_cast<double>(value));
  return result;
}

template <class T>
class HeadNormTest : public testing::Test {};
using StorageTypes = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(HeadNormTest, StorageTypes);

/// No worse than twice the error of the formula in the same precision.
TYPED_TEST(HeadNormTest, EqualsDefinition) {
  using A = Accumulate<TypeParam>;
  const double epsilon = std::numeric_limits<A>::epsilon();
  for (const auto& [b, t, h, e] :
       {std::array{1, 1, 1, 1}, {2, 3, 4, 16}, {1, 5, 3, 7}, {3, 70, 2, 128}}) {
    Inputs in = random_inputs(b, t, h, e);
    SCOPED_TRACE(fmt::format("B {} T {} heads {} E {}", b, t, h, e));
    const HeadNorm result = operation<TypeParam>(in), same = formula<A, TypeParam>(in);
    const HeadNorm truth = formula<long double, long double>(in);
    EXPECT_LE(attention_error(result.y, truth.y),
              2 * std::fmax(epsilon, attention_error(same.y, truth.y)));
    EXPECT_LE(attention_error(result.dx, truth.dx),
              2 * std::fmax(epsilon, attention_error(same.dx, truth.dx)));
    // dgain was added to 1, and rounded there.
    EXPECT_LE(attention_error(result.dgain, truth.dgain),
              2 * std::fmax(4 * epsilon, attention_error(same.dgain, truth.dgain)));
  }
}

TYPED_TEST(HeadNormTest, RepeatsBitForBit) {
  Inputs in = random_inputs(2, 33, 3, 24);
  const HeadNorm first = operation<TypeParam>(in), again = operation<TypeParam>(in);
  EXPECT_EQ(first.y, again.y);
  EXPECT_EQ(first.dx, again.dx);
  EXPECT_EQ(first.dgain, again.dgain);
}

/// Numbers of a dense tensor, rotated.
std::vector<double> rotated(const std::vector<std::size_t>& shape, const std::vector<double>& x,
                            Matrix<const double> table, const ops::Positions& positions,
                            ops::Direction direction) {
  const auto n = [&](int axis) { return static_cast<int>(shape[axis]); };
  Tensor<double> tensor(n(0), n(1), n(2), n(3));
  tensor.host = x;
  tensor.upload();
  ops::run(ops::Context(),
           ops::Rotary<double>{
               .x = tensor.view(), .table = table, .positions = positions, .direction = direction});
  Kokkos::fence();
  return tensor.download();
}

TEST(HeadNorm, IsTurnedAsByRotary) {
  Inputs plain = random_inputs(2, 9, 3, 16);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceMemory> memory("table", 12, 16);
  const Matrix<double> table = memory;
  ops::run(ops::Context(), ops::RotaryTable<double>{.base = 10000, .table = table});
  const ops::Positions positions{3, {}};
  Inputs turned = plain;
  const HeadNorm result = operation<double>(turned, table, positions);
  plain.dy = rotated(plain.shape, plain.dy, table, positions, ops::Direction::backward);
  const HeadNorm before = operation<double>(plain);
  EXPECT_LT(attention_error(result.y, rotated(plain.shape, before.y, table, positions,
                                              ops::Direction::forward)),
            1e-15);
  EXPECT_LT(attention_error(result.dx, before.dx), 1e-14);
  EXPECT_LT(attention_error(result.dgain, before.dgain), 1e-14);
}

TEST(HeadNormGolden, EqualsQwen3) {
  const Golden golden(TERN_SOURCE_DIR "/tests/golden/attention.h5");
  for (const std::string group : {"head_norm/0/", "head_norm/1/"}) {
    SCOPED_TRACE(group);
    Inputs in = golden_inputs(golden, group);
    const HeadNorm result = operation<double>(in);
    EXPECT_LT(attention_error(result.y, golden.numbers(group + "y")), 1e-14);
    EXPECT_LT(attention_error(result.dx, golden.numbers(group + "dx")), 1e-14);
    EXPECT_LT(attention_error(result.dgain, golden.numbers(group + "dgain")), 1e-14);
  }
}

}  // namespace
}  // namespace tern
