/// Shared by the attention kernels for Hopper: accumulators and operands in registers, products of tiles
/// of 64 rows, stores.
#pragma once
#include "ops/attention/cuda/sm90_common/tensor_maps.hpp"
#include "ops/core/cuda/hopper.hpp"
#include "ops/core/cuda/tensor_core.hpp"

namespace tern::ops::cuda::sm90 {

using hopper::Rows, hopper::Acc64x64, hopper::AFragment;

constexpr int group_threads = 128, group_warps = 4;
constexpr float log2_of_e = 1.4426950408889634f;

/// Position in the ring of stages.
template <int stages>
struct Ring {
  int stage = 0, phase = 0;
  __device__ Ring next() const {
    return stage + 1 < stages ? Ring{stage + 1, phase} : Ring{0, phase ^ 1};
  }
};

/// Place of a thread's numbers in an Acc64x64.
struct Lane {
  int thread = static_cast<int>(threadIdx.x) % group_threads, lane = thread % 32;
  int row = thread / 32 * 16 + lane / 4, pair = lane % 4;  // row: also the one 8 below
};

/// 64 rows of E numbers as a left operand.
template <int E>
struct OwnRows {
  AFragment part[E / 16];

  __device__ void load(const Lane& at, std::uint32_t tile) {
    const int row = at.thread / 32 * 16 + at.lane % 16, high = at.lane / 16;
#pragma unroll
    for (int k = 0; k < E / 16; ++k)
      tensor_core::load_matrices(part[k], tile + k / 4 * hopper::operand_bytes +
                                              row * hopper::row_bytes +
                                              ((k % 4 * 2 + high) ^ (row % 8)) * 16);
  }
};

/// The same in shared memory.
struct OwnTile {
  std::uint64_t operand;
};

/// c = rows tile^T, of numbers of type T. Starts the product.
template <class T, int E>
__device__ __forceinline__ void product(Acc64x64& c, const OwnRows<E>& rows, std::uint64_t tile) {
  hopper::begin_products();
  hopper::multiply<T, Rows::along_sum, false>(c, rows.part[0], tile);
#pragma unroll
  for (int k = 1; k < E / 16; ++k)
    hopper::multiply<T, Rows::along_sum, true>(
        c, rows.part[k], hopper::advance(tile, k / 4 * hopper::operand_bytes + k % 4 * 32));
}
template <class T, int E>
__device__ __forceinline__ void product(Acc64x64& c, const OwnTile& rows, std::uint64_t tile) {
  hopper::begin_products();
  hopper::multiply<T, false>(c, rows.operand, tile);
#pragma unroll
  for (int k = 1; k < E / 16; ++k) {
    const int bytes = k / 4 * hopper::operand_bytes + k % 4 * 32;
    hopper::multiply<T, true>(c, hopper::advance(rows.operand, bytes),
                              hopper::advance(tile, bytes));
  }
}
/// sum += left tile, with the 64 x 64 left operand. Starts the product.
template <class T, int E>
__device__ __forceinline__ void add_product(Acc64x64 (&sum)[E / 64], AFragment (&left)[4],
                                            std::uint64_t tile) {
#pragma unroll
  for (int k = 0; k < 4; ++k) hopper::fence_operand(left[k]);
  hopper::begin_products();
#pragma unroll
  for (int n = 0; n < E / 64; ++n)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      hopper::multiply<T, Rows::along_result, true>(
          sum[n], left[k],
          hopper::advance(tile, n * hopper::operand_bytes + k * hopper::strip_bytes));
}

template <class T>
__device__ __forceinline__ void round(AFragment (&to)[4], const Acc64x64& c) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = round_pair<T>(c[2 * i], c[2 * i + 1]);
}

/// Turns gradients of rotated heads back. The tile's first row is number `row0` of the sequence's
/// `tokens`.
template <int E>
__device__ __forceinline__ void inverse_rope(const InverseRope& rope, Lane at, int sequence,
                                             int row0, int tokens, Acc64x64 (&sum)[E / 64]) {
  if (!rope.table) return;
  asm volatile("" : "+r"(at.row));  // as in store_accumulator()
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(row0 + at.row + 8 * half, tokens - 1);
    const int position = rope.positions
                             ? rope.positions[static_cast<std::int64_t>(sequence) * tokens + row]
                             : rope.first + row;
    const float* cosine = rope.table + static_cast<std::int64_t>(position) * E + 2 * at.pair;
    constexpr int octets = E / 16;  // of columns, in half of a head
#pragma unroll
    for (int o = 0; o < octets; ++o) {
      const float2 c = *reinterpret_cast<const float2*>(cosine + 8 * o);
      const float2 s = *reinterpret_cast<const float2*>(cosine + 8 * o + E / 2);
      const int low = 4 * (o % 8) + 2 * half, high = 4 * ((o + octets) % 8) + 2 * half;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float &x = sum[o / 8][low + n], &y = sum[(o + octets) / 8][high + n];
        const float cos = n ? c.y : c.x, sin = n ? s.y : s.x, before = x;
        x = before * cos + y * sin;
        y = y * cos - before * sin;
      }
    }
  }
}

/// factor * sum, rounded, to the tile in shared memory.
template <class T, int E>
__device__ __forceinline__ void store_accumulator(Lane at, const Acc64x64 (&sum)[E / 64],
                                                  float factor, char* tile) {
  asm volatile("" : "+r"(at.row));  // or its addresses take registers of the loop over tiles
#pragma unroll
  for (int n = 0; n < E / 64; ++n)
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = at.row + i % 2 * 8, piece = i / 2;
      *reinterpret_cast<std::uint32_t*>(tile + n * hopper::operand_bytes + row * hopper::row_bytes +
                                        (piece ^ (row % 8)) * 16 + at.pair * 4) =
          round_pair<T>(factor * sum[n][2 * i], factor * sum[n][2 * i + 1]);
    }
}

}  // namespace tern::ops::cuda::sm90
