/// Linear maps through cuBLASLt's fp8 products. These need both operands contiguous along the
/// summed index, so backward takes transposed copies; the kernel that rounds an operand writes the
/// straight copy, the transposed one or both. A separate pass first finds the largest magnitude.

#include <cuda_fp8.h>

#include "base/fp8.hpp"
#include "ops/cuda/detail/fp8_product.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/library.hpp"
#include "ops/fp8.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;
using Sums = Fp8Product::Sums;

constexpr std::size_t product_workspace = std::size_t{64} << 20;
constexpr int block_threads = 256, chunk = 16, tile = 128;  // 8-bit numbers in 16 bytes; in a tile
constexpr int chunks = tile / chunk;

template <class Format>
constexpr cudaDataType type_of = std::is_same_v<Format, E4M3> ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;

/// magnitude = max(magnitude, largest |x|) as float's bits, which order as the numbers do, NaN
/// above all. A maximum does not depend on the order of atomics.
__global__ void largest_of_packs(const uint4* x, std::size_t packs, std::uint32_t* magnitude) {
  __shared__ std::uint32_t of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  std::uint32_t pair = 0;  // two bf16 numbers
  const std::size_t stride = std::size_t(gridDim.x) * block_threads;
#pragma unroll 4
  for (std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x; at < packs;
       at += stride) {
    const uint4 words = x[at];
    for (const std::uint32_t word : {words.x, words.y, words.z, words.w})
      pair = __vmaxu2(pair, word & 0x7fff7fffu);
  }
  const std::uint32_t most = __reduce_max_sync(0xffffffffu, max(pair >> 16, pair & 0xffffu));
  if (threadIdx.x % warp_size == 0) atomicMax(&of_block, most << 16);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(magnitude, of_block);
}

/// Sixteen neighbouring numbers, scaled and rounded.
template <class Format>
__device__ uint4 round_chunk(const bf16* from, float scale) {
  constexpr auto kind = std::is_same_v<Format, E4M3> ? __NV_E4M3 : __NV_E5M2;
  std::uint32_t words[4];
  for (int half = 0; half < 2; ++half) {
    const Pack pack = Pack::load(from + half * pack_size);
    for (int i = 0; i < 2; ++i) {
      const auto two = [&](int at) -> std::uint32_t {
        return __nv_cvt_float2_to_fp8x2({pack.value[at] * scale, pack.value[at + 1] * scale},
                                        __NV_SATFINITE, kind);
      };
      words[2 * half + i] = two(4 * i) | two(4 * i + 2) << 16;
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Four rows of four bytes to four columns.
__device__ void transpose_bytes(const std::uint32_t* rows, std::uint32_t* columns) {
  const std::uint32_t low01 = __byte_perm(rows[0], rows[1], 0x5140);
  const std::uint32_t low23 = __byte_perm(rows[2], rows[3], 0x5140);
  const std::uint32_t high01 = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t high23 = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low01, low23, 0x5410);
  columns[1] = __byte_perm(low01, low23, 0x7632);
  columns[2] = __byte_perm(high01, high23, 0x5410);
  columns[3] = __byte_perm(high01, high23, 0x7632);
}

/// straight (rows, columns) and transposed (columns, rows), each unless null: `from` under its
/// scale. undo: the scale's reciprocal. A block takes a tile; rows and columns are multiples of 16.
/// In shared memory a row's chunks are swizzled by its group of 16 rows, against bank conflicts.
template <class Format>
__global__ void __launch_bounds__(block_threads)
    quantise(const bf16* from, std::size_t rows, std::size_t columns,
             const std::uint32_t* magnitude, std::uint8_t* straight, std::uint8_t* transposed,
             float* undo) {
  __shared__ uint4 staged[tile * chunks];
  const float scale = scale_for<Format>(float_of_bits(*magnitude));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *undo = undo_scale(scale);
  // From the end, which the magnitude pass left in the cache.
  const std::size_t first_row = std::size_t(gridDim.y - 1 - blockIdx.y) * tile;
  const std::size_t first_column = std::size_t(blockIdx.x) * tile;
  const int across = threadIdx.x % chunks, down = threadIdx.x / chunks;
  const std::size_t column = first_column + across * chunk;
#pragma unroll
  for (int r = down; r < tile; r += block_threads / chunks) {
    const std::size_t row = first_row + r;
    if (row >= rows || column >= columns) continue;
    const uint4 rounded = round_chunk<Format>(from + row * columns + column, scale);
    if (straight) *reinterpret_cast<uint4*>(straight + row * columns + column) = rounded;
    if (transposed) staged[r * chunks + (across ^ (r / chunk))] = rounded;
  }
  if (!transposed) return;
  __syncthreads();
  // Each thread transposes 16 rows of 4 columns: the 8 groups of rows across, the 32 words down.
  const std::size_t row = first_row + across * chunk, first = first_column + down * 4;
  if (row >= rows || first >= columns) return;
  const auto* words = reinterpret_cast<const std::uint32_t*>(staged);
  const int word = 4 * ((down / 4) ^ across) + down % 4;
  std::uint32_t turned[4][4];  // (column, four rows)
#pragma unroll
  for (int four = 0; four < 4; ++four) {
    std::uint32_t in[4], out[4];
    for (int i = 0; i < 4; ++i) in[i] = words[(across * chunk + 4 * four + i) * 4 * chunks + word];
    transpose_bytes(in, out);
    for (int i = 0; i < 4; ++i) turned[i][four] = out[i];
  }
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<uint4*>(transposed + (first + i) * rows + row) = {turned[i][0], turned[i][1],
                                                                        turned[i][2], turned[i][3]};
}

/// One operation's operands in the workspace.
class Operands {
 public:
  Operands(const Context& context, const Fp8Workspace<bf16>& work)
      : stream_(stream_of(context)),
        work_(work),
        context_(context),
        bytes_(reinterpret_cast<std::uint8_t*>(work.operands.data())) {}
  /// Room for n bytes from `at` on.
  std::uint8_t* room(std::size_t at, std::size_t n) const {
    TERN_REQUIRE(at + n <= work_.operands.size() * sizeof(bf16), "{} + {} bytes of {}", at, n,
                 work_.operands.size() * sizeof(bf16));
    return bytes_ + at;
  }
  /// Writes the operand number `index` to `straight` and `transposed`.
  template <class Format>
  void write(int index, const Fp8Input<bf16>& operand, std::uint8_t* straight,
             std::uint8_t* transposed) const {
    const Matrix<const bf16>& m = operand.values;
    const Magnitude own(work_.magnitudes.data() + index, 1);
    const Magnitude& magnitude = operand.magnitude.size() > 0 ? operand.magnitude : own;
    if (!operand.known) largest_magnitude<bf16>(context_, m, magnitude);
    const std::size_t rows = m.extent(0), columns = m.extent(1);
    const dim3 tiles(blocks_for(columns, tile), blocks_for(rows, tile));
    quantise<Format><<<tiles, block_threads, 0, stream_>>>(
        m.data(), rows, columns, magnitude.data(), straight, transposed, undo(index));
    check_launch("quantise");
  }
  template <class Format>
  Fp8Operand operand(int index, const std::uint8_t* data, std::size_t rows,
                     std::size_t columns) const {
    return {data, rows, columns, type_of<Format>, undo(index)};
  }

 private:
  float* undo(int index) const { return work_.undo.data() + index * work_.undo.extent(1); }

  cudaStream_t stream_;
  const Fp8Workspace<bf16>& work_;
  const Context& context_;
  std::uint8_t* bytes_;
};

Fp8Product::Work work_of(const Context& context) {
  return {stream_of(context), context.library->workspace(), product_workspace};
}

}  // namespace

bool native_largest_magnitude(const Context& context, Matrix<const bf16> x, Magnitude magnitude) {
  const std::size_t packs = x.size() / pack_size;
  if (!all_aligned(x.data()) || x.size() % pack_size != 0) return false;
  const cudaStream_t stream = stream_of(context);
  std::uint32_t* most = start_magnitude(magnitude, stream);
  if (packs == 0) return true;
  const unsigned blocks =
      std::min<unsigned>(8 * multiprocessors(), blocks_for(packs, block_threads));
  largest_of_packs<<<blocks, block_threads, 0, stream>>>(reinterpret_cast<const uint4*>(x.data()),
                                                         packs, most);
  check_launch("largest_magnitude");
  return true;
}

bool native_fp8_linear_forward(const Context& context, const Fp8Workspace<bf16>& work,
                               const Fp8Input<bf16>& x, Matrix<const bf16> w,
                               Vector<const bf16> bias, Matrix<bf16> y, Write write) {
  if (y.size() == 0) return true;
  if (!all_aligned(x.values.data(), w.data(), bias.data(), y.data())) return false;
  const std::size_t N = y.extent(0), I = w.extent(1), O = w.extent(0);
  const Operands operands(context, work);
  std::uint8_t *qx = operands.room(0, N * I), *qw = operands.room(N * I, w.size());
  operands.write<E4M3>(0, x, qx, nullptr);
  operands.write<E4M3>(1, w, qw, nullptr);
  context.library->fp8_products().multiply(
      work_of(context), operands.operand<E4M3>(0, qx, N, I), operands.operand<E4M3>(1, qw, O, I),
      Sums::fast, y.data(), write == Write::add ? 1.0f : 0.0f, bias.size() ? bias.data() : nullptr);
  return true;
}

bool native_fp8_linear_backward(const Context& context, const Fp8LinearBackward<bf16>& call) {
  const Matrix<const bf16> dy = call.dy.values, x = call.x.values;
  if (dy.size() == 0) return true;
  if (!all_aligned(dy.data(), x.data(), call.w.data(), call.dx.data(), call.dw.data()))
    return false;
  const std::size_t N = x.extent(0), I = x.extent(1), O = call.w.extent(0);
  Fp8Product& products = context.library->fp8_products();
  const Operands operands(context, call.work);
  std::uint8_t *qdy = operands.room(0, dy.size()), *turned = operands.room(dy.size(), dy.size());
  std::uint8_t* other = operands.room(2 * dy.size(), std::max(N, O) * I);
  operands.write<E5M2>(0, call.dy, qdy, turned);
  operands.write<E4M3>(1, call.x, nullptr, other);
  products.multiply(work_of(context), operands.operand<E5M2>(0, turned, O, N),
                    operands.operand<E4M3>(1, other, I, N), Sums::promoted, call.dw.data(), 1.0f);
  if (call.dbias.size()) column_sums<bf16>(context, dy, call.dbias);
  operands.write<E4M3>(2, call.w, nullptr, other);
  products.multiply(work_of(context), operands.operand<E5M2>(0, qdy, N, O),
                    operands.operand<E4M3>(2, other, I, O), Sums::promoted, call.dx.data(), 0.0f);
  return true;
}

}  // namespace tern::ops
