/// Which products are worth the time that it takes to find their fastest algorithm.
#pragma once
#include <cstddef>

namespace tern::ops::cuda {

/// Whether cuBLASLt's proposals for `count` products (m, k) x (k, n) are worth timing: they take
/// long enough, and the shape will come again. Sizes that depend on data, such as the rows of the
/// head's last chunk where a batch scores as many tokens as were masked, are rarely whole tiles:
/// timing each of them would take half of the training time of block diffusion.
constexpr bool should_autotune(std::size_t m, std::size_t n, std::size_t k, std::size_t count = 1) {
  constexpr double least_flops = 1e10;
  constexpr std::size_t tile = 64;
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k * count);
  return flops >= least_flops && m % tile == 0 && n % tile == 0 && k % tile == 0;
}

}  // namespace tern::ops::cuda
