/// Shared by the norms' kernels: how threads share rows, and what drops numbers of a row.
#pragma once
#include "ops/cuda/detail/kernels.hpp"
#include "ops/dropout_mask.hpp"

namespace tern::ops::cuda::detail {

constexpr int min_block = 128;

/// `threads` threads per row, with up to `packs` packs each.
template <int threads, int packs>
constexpr int rows_per_block = threads < min_block ? min_block / threads : 1;

template <int threads, int packs>
struct Shape {
  static constexpr int threads_per_row = threads, packs_per_thread = packs;
};
/// Calls f with the kernel shape for rows of `width`; false if there is none.
template <class F>
bool with_shape(std::size_t width, const F& f) {
  if (width % pack_size != 0 || width > 8192) return false;
  if (width <= 256)
    f(Shape<32, 1>{});
  else if (width <= 1024)
    f(Shape<32, 4>{});
  else if (width <= 4096)
    f(Shape<128, 4>{});
  else
    f(Shape<256, 4>{});
  return true;
}

template <class T>
const T* data_of(const Matrix<const T>& m) {
  return m.size() > 0 ? m.data() : nullptr;
}

__device__ inline Pack sum_of(const Pack& a, const Pack& b) {
  Pack sum;
  for (int i = 0; i < pack_size; ++i) sum.value[i] = a.value[i] + b.value[i];
  return sum;
}

/// A dropout, by value.
struct Dropout {
  static_assert(pack_size == DropoutMask::width);
  DropoutKey key;
  std::uint32_t threshold;
  float scale;

  explicit Dropout(const DropoutKey& of)
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
