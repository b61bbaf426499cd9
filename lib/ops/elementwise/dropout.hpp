/// Dropout (Srivastava et al. 2014). Conventions: ops.hpp.
#pragma once
#include "base/random.hpp"
#include "ops/core/operation.hpp"

namespace tern::ops {

/// Key of a dropout's random numbers: they depend on nothing else, so backward and recomputation
/// draw the same ones.
struct DropoutKey {
  double probability = 0;
  std::uint64_t seed = 0, step = 0;
  std::uint32_t layer = 0;
  std::uint32_t first_row = 0;  // global row number of row 0, so that rank layouts agree
};
/// The draw for columns [8 group, 8 group + 8) of a row, of fewer than 8 Mi columns.
TERN_FUNCTION Random4 dropout_draw(const DropoutKey& key, std::size_t row, std::size_t group) {
  return philox(key.seed, Stream::dropout, key.step,
                key.first_row + static_cast<std::uint32_t>(row),
                (key.layer << 20) | static_cast<std::uint32_t>(group));
}
/// y = added + d(x), each (N, D), where d zeroes a number with the key's probability p and else
/// scales it by 1 / (1 - p); the sum is rounded once. `added` may be empty; y may be x or `added`.
/// d is its own backward operation.
template <class T>
struct Dropout {
  static constexpr Traits traits{.name = "tern::dropout", .native = is_half<T>};
  DropoutKey key;
  Matrix<const T> x;
  Matrix<const T> added = {};
  Matrix<T> y;

  void check() const;
  double bytes() const { return bytes_of(x, added, y); }
  static void portable(const Context&, const Dropout&);
  static bool native(const Context&, const Dropout&);
};

}  // namespace tern::ops
