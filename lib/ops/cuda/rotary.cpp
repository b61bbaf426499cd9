#include "ops/attention.hpp"
#include "ops/cuda/detail/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

struct Rotation {
  bf16* x;
  const float* table;
  std::int64_t sequence_stride, token_stride, head_stride;
  int tokens, heads, half, first;
  float sign;
  const std::int32_t* positions;  // (B*T), or null: first + token
};

// blockIdx.y: the token, blockIdx.z: the sequence; a thread rotates eight pairs of one head.
__global__ void rotary_pairs(Rotation a) {
  const int packs = a.half / pack_size;
  const int at = blockIdx.x * block_threads + threadIdx.x;
  if (at >= packs * a.heads) return;
  const int head = at / packs, i = at % packs * pack_size;
  bf16* low =
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

bool packed(std::size_t stride) { return stride % pack_size == 0; }

}  // namespace

bool native_rotary(const Context& context, Heads<bf16> x, Matrix<const float> table,
                   const Positions& positions, Direction direction) {
  if (x.size() == 0) return true;
  const bool counted = positions.rows.extent(0) == 0;
  const std::size_t half = x.extent(3) / 2;
  if (half % pack_size != 0 || !packed(x.stride(0)) || !packed(x.stride(1)) ||
      !packed(x.stride(2)) || !all_aligned(x.data(), table.data()) || x.extent(0) > 65535 ||
      x.extent(1) > 65535)
    return false;
  const Rotation a{x.data(),
                   table.data(),
                   static_cast<std::int64_t>(x.stride(0)),
                   static_cast<std::int64_t>(x.stride(1)),
                   static_cast<std::int64_t>(x.stride(2)),
                   static_cast<int>(x.extent(1)),
                   static_cast<int>(x.extent(2)),
                   static_cast<int>(half),
                   positions.first,
                   direction == Direction::forward ? 1.0f : -1.0f,
                   counted ? nullptr : positions.rows.data()};
  const dim3 grid(blocks_for(half / pack_size * x.extent(2), block_threads), a.tokens,
                  static_cast<unsigned>(x.extent(0)));
  rotary_pairs<<<grid, block_threads, 0, stream_of(context)>>>(a);
  check_launch("rotary");
  return true;
}

}  // namespace tern::ops
