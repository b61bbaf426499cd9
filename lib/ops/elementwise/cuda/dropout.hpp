/// Dropout of a pack, for kernels that drop numbers on the way.
#pragma once
#include "ops/core/cuda/kernels.hpp"
#include "ops/elementwise/dropout_mask.hpp"

namespace tern::ops::cuda::detail {

__device__ inline Pack sum_of(const Pack& a, const Pack& b) {
  Pack sum;
  for (int i = 0; i < pack_size; ++i) sum.value[i] = a.value[i] + b.value[i];
  return sum;
}

/// A dropout, by value.
struct PackDropout {
  static_assert(pack_size == DropoutMask::width);
  DropoutKey key;
  std::uint32_t threshold;
  float scale;

  explicit PackDropout(const DropoutKey& of)
      : key(of),
        threshold(DropoutMask::threshold(of)),
        scale(static_cast<float>(1 / (1 - of.probability))) {}
  /// Of the pack at a row's `column`.
  __device__ Pack of(const Pack& pack, unsigned row, unsigned column) const {
    const DropoutMask mask(key, row, column / pack_size);
    Pack result;
#pragma unroll
    for (int i = 0; i < pack_size; ++i)
      result.value[i] = mask.keeps(i, threshold) ? pack.value[i] * scale : 0.0f;
    return result;
  }
};

}  // namespace tern::ops::cuda::detail
