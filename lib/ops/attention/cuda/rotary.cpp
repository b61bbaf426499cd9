#include "ops/attention/rotary.hpp"
#include "ops/elementwise/cuda/rounding.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

template <class T>
struct Rotation {
  T* x;
  const float* table;
  std::int64_t sequence_stride, token_stride, head_stride;
  int tokens, heads, half, first;
  float sign;
  const std::int32_t* positions;  // (B*T), or null: first + token
};

// blockIdx.y: the token, blockIdx.z: the sequence; a thread rotates eight pairs of one head.
template <class T>
__global__ void rotary_pairs(Rotation<T> a) {
  const int packs = a.half / pack_size;
  const int at = blockIdx.x * block_threads + threadIdx.x;
  if (at >= packs * a.heads) return;
  const int head = at / packs, i = at % packs * pack_size;
  T* low =
      a.x + blockIdx.z * a.sequence_stride + blockIdx.y * a.token_stride + head * a.head_stride + i;
  const int position = a.positions ? a.positions[std::size_t(blockIdx.z) * a.tokens + blockIdx.y]
                                   : a.first + static_cast<int>(blockIdx.y);
  const float* row = a.table + std::size_t(position) * 2 * a.half + i;
  const Pack cosine = Pack::load(row), sine = Pack::load(row + a.half);
  Pack l = Pack::load(low), h = Pack::load(low + a.half);
  for (int j = 0; j < pack_size; ++j) {
    const float c = cosine.value[j], s = a.sign * sine.value[j];
    const float x = l.value[j], y = h.value[j];
    l.value[j] = x * c - y * s;
    h.value[j] = y * c + x * s;
  }
  l.store(low);
  h.store(low + a.half);
}

/// dqkv (N, width) with the heads before column `rotated` turned back (rounding.hpp). The planes
/// are the halves of the heads, which share their angles.
struct TurnedBack {
  static constexpr int planes = 2;
  const bf16* from;
  const float* table;
  const std::int32_t* positions;  // (N), or null: first + token
  std::size_t width, rotated;
  unsigned tokens, half;
  int first;

  __device__ std::size_t place(int plane, std::size_t column, std::size_t) const {
    const unsigned c = static_cast<unsigned>(column);
    return (c / half * 2 + plane) * half + c % half;
  }
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    const unsigned at = static_cast<unsigned>(place(0, column, 0));
    const bf16* low = from + row * width + at;
    load_chunk(low, to[0]);
    load_chunk(low + half, to[1]);
    if (at >= rotated) return;
    const int position = positions ? positions[row] : first + int(unsigned(row) % tokens);
    const float* cosine = table + std::size_t(position) * 2 * half + at % half;
#pragma unroll
    for (int part = 0; part < chunk; part += pack_size) {
      const Pack c = Pack::load(cosine + part), s = Pack::load(cosine + half + part);
      for (int j = 0; j < pack_size; ++j) {
        const float x = to[0][part + j], y = to[1][part + j];
        to[0][part + j] = x * c.value[j] + y * s.value[j];
        to[1][part + j] = y * c.value[j] - x * s.value[j];
      }
    }
  }
};

bool packed(std::size_t stride) { return stride % pack_size == 0; }

}  // namespace

template <class T>
bool Rotary<T>::native(const Context& context, const Rotary& call) {
  if (call.x.size() == 0) return true;
  const bool counted = call.positions.rows.extent(0) == 0;
  const std::size_t half = call.x.extent(3) / 2;
  if (half % pack_size != 0 || !packed(call.x.stride(0)) || !packed(call.x.stride(1)) ||
      !packed(call.x.stride(2)) || !all_aligned(call.x.data(), call.table.data()) ||
      call.x.extent(0) > 65535 || call.x.extent(1) > 65535)
    return false;
  const Rotation<T> a{call.x.data(),
                      call.table.data(),
                      static_cast<std::int64_t>(call.x.stride(0)),
                      static_cast<std::int64_t>(call.x.stride(1)),
                      static_cast<std::int64_t>(call.x.stride(2)),
                      static_cast<int>(call.x.extent(1)),
                      static_cast<int>(call.x.extent(2)),
                      static_cast<int>(half),
                      call.positions.first,
                      call.direction == Direction::forward ? 1.0f : -1.0f,
                      counted ? nullptr : call.positions.rows.data()};
  const dim3 grid(blocks_for(half / pack_size * call.x.extent(2), block_threads), a.tokens,
                  static_cast<unsigned>(call.x.extent(0)));
  rotary_pairs<<<grid, block_threads, 0, stream_of(context)>>>(a);
  check_launch("rotary");
  return true;
}

template <class T>
bool RotaryBackwardToFp8<T>::native(const Context& context, const RotaryBackwardToFp8& call) {
  const std::size_t E = call.table.extent(1);
  if (call.dqkv.size() == 0) return true;
  if (!rounds_on_the_way(call.rounded, context.scaling) || E % (2 * chunk) != 0 ||
      call.dqkv.extent(1) % E != 0 || !all_aligned(call.dqkv.data(), call.table.data()))
    return false;
  const TurnedBack source{call.dqkv.data(),
                          call.table.data(),
                          call.positions.rows.extent(0) > 0 ? call.positions.rows.data() : nullptr,
                          call.dqkv.extent(1),
                          call.heads * E,
                          static_cast<unsigned>(call.tokens),
                          static_cast<unsigned>(E / 2),
                          call.positions.first};
  launch_rounding("rotary_backward_to_fp8", stream_of(context), source, call.dqkv.extent(0),
                  call.dqkv.extent(1) / 2, call.rounded, context.scaling);
  return true;
}

TERN_INSTANTIATE_NATIVE(Rotary)
template bool RotaryBackwardToFp8<bf16>::native(const Context&, const RotaryBackwardToFp8<bf16>&);

}  // namespace tern::ops
