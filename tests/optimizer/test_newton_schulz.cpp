// Newton-Schulz in batches: singular values near one, the same singular vectors, and the results of
// the device's libraries.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "optimizer/detail/newton_schulz.hpp"

namespace tern::optimizer {
namespace {

/// Singular values squared: eigenvalues of the smaller Gram matrix, from Jacobi rotations.
std::vector<double> squared_singular_values(const std::vector<double>& x, std::size_t m,
                                            std::size_t n) {
  std::vector<double> g(m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t k = 0; k < n; ++k) g[i * m + j] += x[i * n + k] * x[j * n + k];
  for (int sweep = 0; sweep < 12; ++sweep)
    for (std::size_t p = 0; p < m; ++p)
      for (std::size_t q = p + 1; q < m; ++q) {
        const double angle = 0.5 * std::atan2(2 * g[p * m + q], g[q * m + q] - g[p * m + p]);
        const double c = std::cos(angle), s = std::sin(angle);
        for (std::size_t k = 0; k < m; ++k) {
          const double a = g[k * m + p], b = g[k * m + q];
          g[k * m + p] = c * a - s * b, g[k * m + q] = s * a + c * b;
        }
        for (std::size_t k = 0; k < m; ++k) {
          const double a = g[p * m + k], b = g[q * m + k];
          g[p * m + k] = c * a - s * b, g[q * m + k] = s * a + c * b;
        }
      }
  std::vector<double> values(m);
  for (std::size_t i = 0; i < m; ++i) values[i] = g[i * m + i];
  return values;
}

/// `count` matrices in a span, the last one first, with gaps between them.
template <class T>
struct Batch {
  using A = Accumulate<T>;

  Batch(std::size_t count_, std::size_t rows_, std::size_t columns_, bool accelerated = false)
      : count(count_),
        rows(rows_),
        columns(columns_),
        arena(planned(accelerated) + 64 * count * rows * columns + (std::size_t{1} << 16)),
        context(ops::make_context(arena, accelerated, "portable")),
        span(arena.vector<A>("span", Term::workspace, count * (rows * columns + 3))),
        at(arena.vector<std::size_t>("at", Term::workspace, count)),
        host("span", span.size()) {
    detail::BatchSize size;
    size.include(count, rows, columns);
    newton_schulz.emplace(size, arena);
    const HostVector<std::size_t> places("places", count);
    for (std::size_t i = 0; i < count; ++i) places(i) = (count - 1 - i) * (rows * columns + 3);
    Kokkos::deep_copy(at, places);
    for (std::size_t i = 0; i < span.size(); ++i)
      host(i) = static_cast<A>(std::sin(0.37 * static_cast<double>(i * i % 1009) + 0.1));
    Kokkos::deep_copy(span, host);
  }
  static std::size_t planned(bool accelerated) {
    Arena measuring;
    ops::make_context(measuring, accelerated, "portable");
    return measuring.bytes();
  }
  /// Matrix i as stored in the span.
  std::vector<double> from(std::size_t i) const {
    const A* first = host.data() + (count - 1 - i) * (rows * columns + 3);
    return std::vector<double>(first, first + rows * columns);
  }
  std::vector<double> part(const std::vector<double>& all, std::size_t i) const {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * rows * columns);
    return {first, first + static_cast<std::ptrdiff_t>(rows * columns)};
  }
  /// All matrices, orthogonalized.
  std::vector<double> orthogonal() const {
    const auto x = (*newton_schulz)(context, span, at, rows, columns);
    EXPECT_EQ(x.extent(0), count);
    EXPECT_EQ(x.extent(1), rows);
    EXPECT_EQ(x.extent(2), columns);
    context.fence("orthogonal");
    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, x);
    std::vector<double> values(result.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(static_cast<A>(result.data()[i]));
    return values;
  }

  std::size_t count, rows, columns;
  Arena arena;
  ops::Context context;
  Vector<A> span;
  Vector<std::size_t> at;
  HostVector<A> host;
  std::optional<detail::NewtonSchulz<T>> newton_schulz;
};

std::vector<double> singular_values(const std::vector<double>& x, std::size_t rows,
                                    std::size_t columns) {
  std::vector<double> wide = x;
  if (rows > columns)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) wide[j * rows + i] = x[i * columns + j];
  std::vector<double> values =
      squared_singular_values(wide, std::min(rows, columns), std::max(rows, columns));
  for (double& value : values) value = std::sqrt(value);
  std::sort(values.begin(), values.end());
  return values;
}

template <class T>
void check_orthogonal(std::size_t rows, std::size_t columns) {
  const Batch<T> batch(3, rows, columns);
  const std::vector<double> all = batch.orthogonal();
  for (std::size_t i = 0; i < batch.count; ++i) {
    const auto from = batch.from(i), x = batch.part(all, i);
    const std::vector<double> values = singular_values(x, rows, columns);
    std::printf("%zu x %zu %s: singular values %.3f to %.3f\n", rows, columns, type_name<T>(),
                values.front(), values.back());
    EXPECT_GE(values.front(), 0.67);
    EXPECT_LE(values.back(), 1.2);
    // The same singular vectors: <from, x> is the sum of s_i times the new singular values.
    const double trace = std::inner_product(x.begin(), x.end(), from.begin(), 0.0);
    const std::vector<double> old = singular_values(from, rows, columns);
    const double nuclear = std::accumulate(old.begin(), old.end(), 0.0);
    EXPECT_GE(trace, 0.67 * nuclear);
    EXPECT_LE(trace, 1.2 * nuclear);
  }
}

TEST(NewtonSchulz, GivesNearlyOrthogonalMatrices) {
  check_orthogonal<double>(24, 40);
  check_orthogonal<double>(40, 24);
  check_orthogonal<float>(16, 16);
  check_orthogonal<float>(48, 17);
  check_orthogonal<bf16>(24, 40);
  check_orthogonal<bf16>(40, 24);
  check_orthogonal<fp16>(24, 40);
  check_orthogonal<fp16>(40, 24);
}

TEST(NewtonSchulz, OfZeroIsZero) {
  Batch<float> batch(2, 4, 6);
  Kokkos::deep_copy(batch.span, 0.0f);
  for (const double x : batch.orthogonal()) EXPECT_EQ(x, 0);
}

/// The device's libraries, where there are any, have at most twice the error of the portable
/// products.
TEST(NewtonSchulz, AcceleratedIsAsExact) {
  for (const auto& [rows, columns] : {std::pair{64, 256}, {256, 64}, {128, 128}, {40, 24}}) {
    const auto R = static_cast<std::size_t>(rows), C = static_cast<std::size_t>(columns);
    const auto exact = Batch<double>(3, R, C).orthogonal();
    const auto plain = Batch<bf16>(3, R, C).orthogonal();
    const auto fast = Batch<bf16>(3, R, C, true).orthogonal();
    const auto error = [&](const std::vector<double>& x) {
      double difference = 0;
      for (std::size_t i = 0; i < x.size(); ++i) difference += std::pow(x[i] - exact[i], 2);
      return std::sqrt(difference / static_cast<double>(3 * std::min(R, C)));
    };
    std::printf("%d x %d: error %.1e, portable %.1e\n", rows, columns, error(fast), error(plain));
    EXPECT_GT(error(plain), 1e-5);
    EXPECT_LE(error(fast), 2 * error(plain));
  }
}

}  // namespace
}  // namespace tern::optimizer
