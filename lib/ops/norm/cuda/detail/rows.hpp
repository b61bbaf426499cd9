/// Division of a norm's rows over threads.
#pragma once
#include "ops/core/cuda/kernels.hpp"

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

}  // namespace tern::ops::cuda::detail
