/// Skinny GEMM kernel: y (N, O) = x (N, I) w (O, I)^T for few rows, bound by reading w.
///
/// A cluster computes some columns of y, as many as share them evenly among the multiprocessors;
/// each block sums its part of I, then the parts are added in order through the cluster's shared
/// memory, so a row's bits depend only on w and its own x. One warp keeps as many steps of w in
/// flight to shared memory as fit, the first of them before earlier kernels have ended; the other
/// warps multiply.
///
/// The result may be an activation of the sums, whose kernel would take longer to begin and to end
/// than to run.
///
/// w is in T, or in E4M3 with a scale per column of y (ops/fp8_weight.hpp). If x is in T, a
/// warpgroup converts its tile of a step of w to T in registers, while the products of the step
/// before run; the numbers are exact in T, so the same division gives the same bits as w in T. If x
/// is in E4M3, too, with a scale per row, the codes are multiplied. Tensor cores keep about 14 bits of
/// a sum of such products, so the sum of each step is added to the others in float.
#pragma once
#include <algorithm>

#include "ops/activation/cuda/functions.hpp"
#include "ops/core/cuda/hopper.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/tensor_core.hpp"

namespace tern::ops::cuda::skinny {

constexpr int group_threads = 128;
constexpr int max_parts = 8;  // blocks of a cluster, as many as every device supports

/// Which operands are in E4M3.
enum class Codes { none, of_w, of_both };

/// Numbers of I that a step takes, and their bytes in a row of w; x has 128 per row.
template <Codes codes>
struct Step {
  static constexpr int numbers =
      codes == Codes::of_both ? 2 * hopper::tile_width : hopper::tile_width;
  static constexpr int w_row_bytes = codes == Codes::none ? 2 * numbers : numbers;
};

/// At most Squares x 64 rows; Groups warpgroups of up to 64 columns each. As many steps as fit in
/// shared memory, up to 8, or 16 with codes; one block per multiprocessor.
template <int Squares, int Groups, Codes Of>
struct Shape {
  static constexpr int squares = Squares, groups = Groups;
  static constexpr Codes codes = Of;
  static constexpr bool converts = codes == Codes::of_w;
  static constexpr int threads = groups * group_threads + 32;
  static constexpr int releases =
      groups * (converts ? 4 : 1);  // of a stage: warps read codes apart
  static constexpr int columns = groups * hopper::product_rows;
  static constexpr int rows = squares * hopper::product_rows;
  static constexpr int step_numbers = Step<codes>::numbers;
  static constexpr int w_row_bytes = Step<codes>::w_row_bytes;
  static constexpr int group_bytes = hopper::product_rows * w_row_bytes;  // of w
  static constexpr int w_bytes = groups * group_bytes, x_bytes = rows * hopper::row_bytes;
  static constexpr int stage_bytes = w_bytes + x_bytes;
  static constexpr int stages = std::min(codes == Codes::none ? 8 : 16, (216 << 10) / stage_bytes);
  static constexpr int pitch = columns + 4;  // floats per row of sums, against bank conflicts
  static constexpr int sums_bytes = rows * pitch * 4;
  static constexpr int alignment = 1024;
  static constexpr int shared_bytes = alignment + stages * stage_bytes;
  static_assert(sums_bytes <= stages * stage_bytes);
};

/// Work on the sums before they are rounded.
enum class Epilogue { nothing, swiglu, gelu, relu2 };

template <class T>
struct Result {
  T* y;
  int rows, columns;  // of y: N, O, if paired O / 2
  int x_rows;         // copied, a multiple of 8: the products of a tile's other rows are not used
  int width;          // rows of w per block, if paired half of them gates; both are multiples of 8
  int steps;          // of I
  bool added;         // to y
  const float *undo_w, *undo_x;  // (O), (N) factors of the rows of operands in E4M3
  Epilogue epilogue;
  bool paired;  // rows of w are gates, then the rows that they multiply

  __device__ int block_columns() const { return paired ? width / 2 : width; }  // of y
};

/// 64 x 64 numbers of w, as left operands of four products.
using Tile = hopper::AFragment[hopper::tile_width / 16];

template <class T, class S>
struct Block {
  const CUtensorMap& w;
  const CUtensorMap& x;
  const Result<T>& result;
  std::uint32_t shared, full, empty;  // addresses; the barriers have 8 bytes each
  int part = static_cast<int>(blockIdx.y), parts = static_cast<int>(gridDim.y);
  int first = result.steps * part / parts;
  int steps = result.steps * (part + 1) / parts - first;
  int column0 = static_cast<int>(blockIdx.x) * result.block_columns();

  __device__ std::uint32_t stage(int step) const {
    return shared + step % S::stages * S::stage_bytes;
  }
  __device__ static int at(int step) { return step % S::stages * 8; }

  __device__ void copy_w(int step) const {
    hopper::arrive_expecting(full + at(step),
                             result.width * S::w_row_bytes + result.x_rows * hopper::row_bytes);
    const int column = (first + step) * S::step_numbers, rows = result.block_columns();
    hopper::copy_tile(stage(step), w, column0, column, full + at(step),
                      hopper::CacheHint::evict_first);
    if (result.paired)
      hopper::copy_tile(stage(step) + rows * S::w_row_bytes, w, result.columns + column0, column,
                        full + at(step), hopper::CacheHint::evict_first);
  }
  __device__ void copy_x(int step) const {
    hopper::copy_tile(stage(step) + S::w_bytes, x, 0, (first + step) * S::step_numbers,
                      full + at(step), hopper::CacheHint::evict_last);
  }
  __device__ void copy() const {
    const int begun = min(S::stages, steps);
    for (int i = 0; i < begun; ++i) copy_w(i);
    detail::await_previous();
    for (int i = 0; i < begun; ++i) copy_x(i);
    for (int i = begun; i < steps; ++i) {
      hopper::await(empty + at(i), (i / S::stages - 1) & 1);
      copy_w(i);
      copy_x(i);
    }
  }

  /// Waits for a step and converts its codes. Rows of 64 bytes lie two to a line of 128, whose 16
  /// bytes the 64-byte swizzle of TMA permutes by the line.
  __device__ void load_codes(int group, int step, Tile& to) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(threadIdx.x) % group_threads / 32 * 16 + lane % 16;
    const std::uint32_t from = stage(step) + group * S::group_bytes + row * S::w_row_bytes;
    hopper::await(full + at(step), step / S::stages & 1);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      tensor_core::Left codes;  // of 16 columns: rows, and those 8 below; then of the next 16
      const int chunk = 2 * half + lane / 16;
      tensor_core::load_matrices(codes, from + (chunk ^ row / 2 % 4) * 16);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        hopper::AFragment& strip = to[2 * half + i / 2];
        expand_codes<T>(codes[i], strip[i % 2], strip[i % 2 + 2]);
      }
    }
  }
  /// Starts the products of a step and, once those of the step before it have ended, converts the
  /// next one meanwhile.
  __device__ void multiply_converted(int group, int step, Tile& now, Tile& next,
                                     hopper::Acc64x64 (&sum)[S::squares]) const {
    const std::uint32_t x_tile = stage(step) + S::w_bytes;
#pragma unroll
    for (hopper::AFragment& strip : now) hopper::fence_operand(strip);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < hopper::tile_width / 16; ++k)
#pragma unroll
      for (int n = 0; n < S::squares; ++n)
        hopper::multiply<T, hopper::Rows::along_sum, true>(
            sum[n], now[k], hopper::operand(x_tile + n * hopper::operand_bytes + k * 32));
    hopper::commit_products();
    hopper::await_products<1>();
#pragma unroll
    for (hopper::AFragment& strip : next)
      hopper::fence_operand(strip);  // its registers were in use until here
    if (step > 0 && threadIdx.x % 32 == 0) hopper::arrive(empty + at(step - 1));
    if (step + 1 < steps) load_codes(group, step + 1, next);
  }
  __device__ void multiply_converted(int group, hopper::Acc64x64 (&sum)[S::squares]) const {
    Tile even = {}, odd = {};
    load_codes(group, 0, even);
    for (int i = 0; i < steps; i += 2) {
      multiply_converted(group, i, even, odd, sum);
      if (i + 1 < steps) multiply_converted(group, i + 1, odd, even, sum);
    }
    hopper::await_products<0>();
#pragma unroll
    for (hopper::Acc64x64& square : sum) hopper::fence_operand(square);
  }

  /// The products of a step once it is there, onto `sum` or in its place; their operands are free
  /// afterwards.
  template <class Number, bool onto>
  __device__ void multiply_step(int group, int step, hopper::Acc64x64 (&sum)[S::squares]) const {
    hopper::await(full + at(step), step / S::stages & 1);
    const std::uint32_t w_tile = stage(step) + group * S::group_bytes;
    const std::uint32_t x_tile = stage(step) + S::w_bytes;
    hopper::begin_products();
#pragma unroll
    for (int n = 0; n < S::squares; ++n)
      hopper::multiply<Number, onto>(sum[n], hopper::operand(w_tile),
                                     hopper::operand(x_tile + n * hopper::operand_bytes));
#pragma unroll
    for (int k = 32; k < hopper::row_bytes; k += 32)
#pragma unroll
      for (int n = 0; n < S::squares; ++n)
        hopper::multiply<Number>(sum[n], hopper::operand(w_tile + k),
                                 hopper::operand(x_tile + n * hopper::operand_bytes + k));
    hopper::end_products();
    if (threadIdx.x % group_threads == 0) hopper::arrive(empty + at(step));
  }
  __device__ void multiply(int group, hopper::Acc64x64 (&sum)[S::squares]) const {
    for (int i = 0; i < steps; ++i) multiply_step<T, true>(group, i, sum);
  }
  /// The products of codes of each step by themselves, then added in float.
  __device__ void multiply_codes(int group, hopper::Acc64x64 (&sum)[S::squares]) const {
    for (int i = 0; i < steps; ++i) {
      hopper::Acc64x64 of_step[S::squares] = {};
      multiply_step<E4M3, false>(group, i, of_step);
#pragma unroll
      for (int n = 0; n < S::squares; ++n) {
        hopper::fence_operand(of_step[n]);
#pragma unroll
        for (int j = 0; j < 32; ++j) sum[n][j] += of_step[n][j];
      }
    }
  }

  /// Stores the sums to shared memory, by rows of y.
  __device__ void keep(int group, const hopper::Acc64x64 (&sum)[S::squares], float* sums) const {
    const int thread = static_cast<int>(threadIdx.x) % group_threads, lane = thread % 32;
    const int column = group * hopper::product_rows + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < S::squares; ++n)
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int row = n * hopper::product_rows + i / 4 * 8 + lane % 4 * 2 + i % 2;
        sums[row * S::pitch + column + i % 4 / 2 * 8] = sum[n][i];
      }
  }

  /// Sums of all parts for four rows of w, from `column` of this block on; `of_w`: the first of them.
  __device__ float4 total(int row, int column, int of_w) const {
    const std::uint32_t from = shared + (row * S::pitch + column) * 4;
    // All that is read is in flight at once.
    float4 undo;
    float undo_row = 1;
    if constexpr (S::codes != Codes::none)
      undo = *reinterpret_cast<const float4*>(result.undo_w + of_w);
    if constexpr (S::codes == Codes::of_both) undo_row = result.undo_x[row];
    float4 of_part[max_parts];
#pragma unroll
    for (int p = 0; p < max_parts; ++p)
      if (p < parts) of_part[p] = hopper::load_from(p, from);
    float4 sum = {};
#pragma unroll
    for (int p = 0; p < max_parts; ++p) {
      if (p == parts) break;
      const float4& v = of_part[p];
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    if constexpr (S::codes != Codes::none) {
      sum.x *= undo.x * undo_row, sum.y *= undo.y * undo_row;
      sum.z *= undo.z * undo_row, sum.w *= undo.w * undo_row;
    }
    return sum;
  }
  /// The activation of four sums; `up`: of swiglu, whose gates they are.
  __device__ static float4 activated(Epilogue epilogue, const float4& x, const float4& up) {
    const auto each = [&](const auto& f) {
      return float4{f(x.x, up.x), f(x.y, up.y), f(x.z, up.z), f(x.w, up.w)};
    };
    switch (epilogue) {
      case Epilogue::swiglu:
        return each([](float g, float u) { return g * sigmoid(g) * u; });
      case Epilogue::gelu:
        return each([](float v, float) { return Gelu::forward(v); });
      case Epilogue::relu2:
        return each([](float v, float) { return Relu2::forward(v); });
      case Epilogue::nothing:
        break;
    }
    return x;
  }

  /// Adds the parts of this block's rows of the cluster and writes what follows.
  __device__ void write() const {
    const int columns = result.block_columns(), units = columns / 4;
    const int begin = result.rows * part / parts, end = result.rows * (part + 1) / parts;
    for (int i = static_cast<int>(threadIdx.x); i < (end - begin) * units; i += S::threads) {
      const int row = begin + i / units, column = i % units * 4, at = column0 + column;
      if (at >= result.columns) continue;
      auto* to =
          reinterpret_cast<uint2*>(result.y + static_cast<std::int64_t>(row) * result.columns + at);
      const uint2 old = result.added ? *to : uint2{};
      float4 sum = total(row, column, at);
      if (result.epilogue != Epilogue::nothing) {
        float4 up = {};
        if (result.paired) up = total(row, columns + column, result.columns + at);
        sum = activated(result.epilogue, sum, up);
      }
      if (result.added) {
        const float2 low = expand_pair<T>(old.x), high = expand_pair<T>(old.y);
        sum.x += low.x, sum.y += low.y, sum.z += high.x, sum.w += high.y;
      }
      *to = {round_pair<T>(sum.x, sum.y), round_pair<T>(sum.z, sum.w)};
    }
  }
};

// blockIdx.x: columns of y; blockIdx.y: part of I; all parts form a cluster.
template <class T, class S>
__global__ void __launch_bounds__(S::threads, 1)
    product(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
            const Result<T> result) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char shared[];
  __shared__ __align__(8) std::uint64_t barriers[2 * S::stages];
  const std::uint32_t own = tensor_core::shared_address(shared);
  const std::uint32_t base = (own + S::alignment - 1) / S::alignment * S::alignment;
  const std::uint32_t full = tensor_core::shared_address(barriers), empty = full + 8 * S::stages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::stages; ++i) {
      hopper::init_barrier(full + 8 * i, 1);
      hopper::init_barrier(empty + 8 * i, S::releases);
    }
    hopper::publish_barriers();
  }
  __syncthreads();
  const Block<T, S> block{w, x, result, base, full, empty};
  const int group = static_cast<int>(threadIdx.x) / group_threads;
  if (group == S::groups) {
    if (threadIdx.x % 32 == 0) block.copy();
    __syncwarp();
  } else {
    hopper::Acc64x64 sum[S::squares] = {};
    if constexpr (S::codes == Codes::of_both)
      block.multiply_codes(group, sum);
    else if constexpr (S::converts)
      block.multiply_converted(group, sum);
    else
      block.multiply(group, sum);
    // All groups have finished their last step, so the stages are free.
    asm volatile("bar.sync 1, %0;\n" ::"n"(S::groups * group_threads) : "memory");
    block.keep(group, sum, reinterpret_cast<float*>(shared + (base - own)));
  }
  hopper::cluster_barrier();
  detail::release_next();
  detail::await_previous();
  block.write();
  hopper::cluster_barrier();  // other blocks read the sums until here
#endif
}

}  // namespace tern::ops::cuda::skinny
