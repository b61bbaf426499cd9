/// Rounding of a row that a group of threads holds in registers to E4M3, with a scale of its own
/// (ops/fp8_rows.hpp).
#pragma once
#include "ops/elementwise/cuda/rounding.hpp"
#include "ops/elementwise/fp8_rows.hpp"

namespace tern::ops::cuda::detail {

/// Where a kernel writes rows' codes, by value; codes null: nowhere.
struct RowCodes {
  std::uint8_t* codes;
  float* undo;
  int width;  // of a row of codes

  explicit RowCodes(const Fp8Rows& to)
      : codes(to.wanted() ? to.codes.data() : nullptr),
        undo(to.undo.data()),
        width(static_cast<int>(to.codes.extent(1))) {}
};

/// Of the codes of neighboring packs, on two lanes, those 8 that a lane stores in the order of
/// code_place(). By all lanes of a warp.
__device__ inline uint2 in_code_places(const uint2& own) {
  const bool second = threadIdx.x % 2;
  const std::uint32_t others = __shfl_xor_sync(0xffffffffu, second ? own.x : own.y, 1);
  const std::uint32_t low = second ? others : own.x, high = second ? own.y : others;
  return {__byte_perm(low, high, 0x5140), __byte_perm(low, high, 0x7362)};
}

/// Rounds a row of `threads` threads with `packs` packs each, pack p of thread t being number
/// p * threads + t, zeros beyond the row's end; writes its codes and its scale. `shared`: as of
/// group_sum().
template <int threads, int packs, class T>
__device__ void round_row(RawPack<T> (&x)[packs], int row, const RowCodes& to, float* shared) {
  float most = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) most = larger(most, x[p].pack());
  const float scale = e4m3_scale_in<T>(group_max<threads>(most, shared)), undo = undo_scale(scale);
  if (threadIdx.x == 0) to.undo[row] = undo;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    if (p * threads * pack_size >= to.width) break;
    const int column = (p * threads + static_cast<int>(threadIdx.x)) * pack_size;
    Pack pack = x[p].pack();
    const uint2 codes = in_code_places(
        {round_four<E4M3>(pack.value, scale), round_four<E4M3>(pack.value + 4, scale)});
    if (column < to.width)
      *reinterpret_cast<uint2*>(to.codes + std::size_t(row) * to.width + column) = codes;
    for (float& value : pack.value) value = round_to<E4M3>(value * scale) * undo;
    x[p] = RawPack<T>::round(pack);
  }
}

}  // namespace tern::ops::cuda::detail
