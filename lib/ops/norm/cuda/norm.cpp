/// RMSNorm and LayerNorm, forward. A row belongs to a warp, or to a block where it is long, and
/// stays in registers between its passes: every number crosses the memory bus once.
#include "ops/norm/norm.hpp"
#include "ops/elementwise/cuda/code_rows.hpp"
#include "ops/elementwise/cuda/dropout.hpp"
#include "ops/elementwise/cuda/rounding.hpp"
#include "ops/norm/cuda/detail/rows.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

template <class T>
struct Forward {
  const T *x, *gain, *bias;
  T* y;
  float *mean, *rstd;
  int rows, width;
  float eps;
  std::uint32_t* magnitude;  // or null
  const T* terms[3];         // of the sum that x is yet to be; each may be null
  T* made;                   // it, in x's place; null: x is there
  PackDropout dropout;       // of the second of two terms, with InputFusion::dropping
  RowCodes coded;            // y, with OutputFusion::coded
};

/// x, or the sum that it is yet to be, not rounded.
template <class T>
__device__ Pack input(const Forward<T>& a, std::size_t at) {
  if (!a.made) return Pack::load(a.x + at);
  Pack total{};
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    if (!a.terms[t]) continue;
    const Pack more = Pack::load(a.terms[t] + at);
    for (int i = 0; i < pack_size; ++i) total.value[i] += more.value[i];
  }
  return total;
}

/// Work on the input before it is normalized: x as it is stored or a sum; a term and the dropout of another.
enum class InputFusion { any, dropping };

/// Work on the result: none, or rounding to codes.
enum class OutputFusion { plain, coded };

/// The terms of InputFusion::dropping: all loads of a row are in flight before the first draw.
template <class T>
struct Dropping {
  RawPack<T> kept, dropped;
  __device__ static Dropping load(const Forward<T>& a, std::size_t at) {
    return {RawPack<T>::load(a.terms[0] + at), RawPack<T>::load(a.terms[1] + at)};
  }
  __device__ Pack sum(const Forward<T>& a, int row, int column) const {
    return sum_of(kept.pack(), a.dropout.of(dropped.pack(), row, column));
  }
};

template <Norm norm, InputFusion input_fusion, OutputFusion output_fusion, int threads, int packs,
          class T>
__global__ void __launch_bounds__(threads* rows_per_block<threads, packs>) norm_rows(Forward<T> a) {
  __shared__ float shared[threads / warp_size];
  const int row = blockIdx.x * rows_per_block<threads, packs> + threadIdx.y;
  release_next();
  await_previous();
  if (row >= a.rows) return;
  const std::size_t start = std::size_t(row) * a.width;
  Pack x[packs];
  RawPack<T> gains[packs];  // in flight at once with x
  Dropping<T> terms[input_fusion == InputFusion::dropping ? packs : 1];
  float sum = 0, squares = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    x[p] = Pack{};
    if (column >= a.width) continue;
    gains[p] = RawPack<T>::load(a.gain + column);
    if constexpr (input_fusion == InputFusion::dropping)
      terms[p] = Dropping<T>::load(a, start + column);
    else
      x[p] = input(a, start + column);
  }
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    if constexpr (input_fusion == InputFusion::dropping)
      if (column < a.width) x[p] = terms[p].sum(a, row, column);
    if (a.made && column < a.width) {
      const RawPack<T> made = RawPack<T>::round(x[p]);
      made.store(a.made + start + column);
      x[p] = made.pack();
    }
    for (float value : x[p].value) sum += value, squares += value * value;
  }
  float mean = 0;
  if constexpr (norm == Norm::layernorm) {
    mean = group_sum<threads>(sum, shared) / a.width;
    squares = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p)
      if ((p * threads + threadIdx.x) * pack_size < a.width)
        for (float value : x[p].value) squares += (value - mean) * (value - mean);
  }
  const float rstd = rsqrtf(group_sum<threads>(squares, shared) / a.width + a.eps);
  if (threadIdx.x == 0) {
    if constexpr (norm == Norm::layernorm) a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  float most = 0;
  RawPack<T> results[output_fusion == OutputFusion::coded ? packs : 1] = {};
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    if (column >= a.width) break;
    const Pack gain = gains[p].pack();
    Pack bias{};
    if (a.bias) bias = Pack::load(a.bias + column);
    Pack y;
    for (int i = 0; i < pack_size; ++i)
      y.value[i] = (x[p].value[i] - mean) * rstd * gain.value[i] + bias.value[i];
    if constexpr (output_fusion == OutputFusion::coded) {
      results[p] = RawPack<T>::round(y);
    } else {
      y.store(a.y + start + column);
      most = larger(most, y);
    }
  }
  if constexpr (output_fusion == OutputFusion::coded) {
    round_row<threads>(results, row, a.coded, shared);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * threads + threadIdx.x) * pack_size;
      if (column < a.width) results[p].store(a.y + start + column);
    }
    return;
  }
  if (a.magnitude) raise_magnitude(a.magnitude, most);
}

// ---- forward, rounded to fp8 on the way (rounding.hpp)

constexpr int tile_rows = 32, tile_groups = tile_rows / chunk;
constexpr int rounding_warps = rounding_threads / warp_size;

/// Words of shared memory: the block's rows in fp8; the second group of 16 rows starts 16 banks on.
constexpr int staged_words(int width) { return tile_rows * width / 4 + warp_size / tile_groups; }
__device__ inline int staged_word(int row, int column, int width) {
  return row * (width / 4) + row / chunk * (warp_size / tile_groups) + column / 4;
}

/// A warp takes a row at a time, a block 32 rows; up to `packs` packs per lane.
template <Norm norm, InputFusion input_fusion, int packs>
__global__ void __launch_bounds__(rounding_threads)
    norm_rows_to_fp8(Forward<bf16> a, RoundingTarget to) {
  using T = bf16;
  extern __shared__ std::uint32_t staged[];
  const int lane = threadIdx.x % warp_size, first_row = blockIdx.x * tile_rows;
  const float scale = to.template scale<E4M3>();
  if (blockIdx.x == 0 && threadIdx.x == 0) *to.undo = undo_scale(scale);
  for (int r = threadIdx.x / warp_size; r < tile_rows; r += rounding_warps) {
    const int row = first_row + r;
    if (row >= a.rows) break;
    const std::size_t start = std::size_t(row) * a.width;
    RawPack<T> x[packs];
    Dropping<T> terms[input_fusion == InputFusion::dropping ? packs : 1];
    float sum = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * warp_size + lane) * pack_size;
      x[p] = {};
      if (column >= a.width) continue;
      if constexpr (input_fusion == InputFusion::dropping)
        terms[p] = Dropping<T>::load(a, start + column);
      else
        x[p] = RawPack<T>::load(a.x + start + column);
    }
    if constexpr (input_fusion ==
                  InputFusion::dropping) {  // without these braces nvcc 13.0 drops the loop below
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        const int column = (p * warp_size + lane) * pack_size;
        if (column >= a.width) break;
        x[p] = RawPack<T>::round(terms[p].sum(a, row, column));
        x[p].store(a.made + start + column);
      }
    }
#pragma unroll
    for (int p = 0; p < packs; ++p)
      for (const float value : x[p].pack().value) sum += value, squares += value * value;
    float mean = 0;
    if constexpr (norm == Norm::layernorm) {
      mean = warp_sum(sum) / a.width;
      squares = 0;
#pragma unroll
      for (int p = 0; p < packs; ++p)
        if ((p * warp_size + lane) * pack_size < a.width)
          for (const float value : x[p].pack().value) squares += (value - mean) * (value - mean);
    }
    const float rstd = rsqrtf(warp_sum(squares) / a.width + a.eps);
    if (lane == 0) {
      if constexpr (norm == Norm::layernorm) a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * warp_size + lane) * pack_size;
      if (column >= a.width) break;
      Pack y = x[p].pack();
      const Pack gain = Pack::load(a.gain + column);
      Pack bias{};
      if (a.bias) bias = Pack::load(a.bias + column);
      for (int i = 0; i < pack_size; ++i)
        y.value[i] = (y.value[i] - mean) * rstd * gain.value[i] + bias.value[i];
      count_saturated<E4M3>(to.saturated, y.value, pack_size, scale);
      const uint2 rounded = {round_four<E4M3>(y.value, scale),
                             round_four<E4M3>(y.value + 4, scale)};
      if (to.straight) *reinterpret_cast<uint2*>(to.straight + start + column) = rounded;
      *reinterpret_cast<uint2*>(staged + staged_word(r, column, a.width)) = rounded;
    }
  }
  if (!to.transposed) return;
  __syncthreads();
  for (int at = threadIdx.x; at < tile_groups * a.width / 4; at += rounding_threads) {
    const int group = at % tile_groups, column = at / tile_groups * 4;
    const int row = first_row + group * chunk;
    if (row >= a.rows) continue;
    write_transposed(to.transposed, a.rows, column, row, [&](int r) {
      return staged[staged_word(group * chunk + r, column, a.width)];
    });
  }
}

template <Norm norm, InputFusion input_fusion, int packs>
void launch_rounded(const Context& context, const Forward<bf16>& a, const Fp8Matrix& rounded) {
  const int bytes = staged_words(a.width) * 4;
  const auto kernel = &norm_rows_to_fp8<norm, input_fusion, packs>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<blocks_for(a.rows, tile_rows), rounding_threads, bytes, stream_of(context)>>>(
      a, RoundingTarget(rounded, context.scaling));
  check_launch("norm_forward to fp8");
}
/// False if there is no kernel for the width.
template <Norm norm, InputFusion input_fusion, class T>
bool launch_rounded(const Context& context, const Forward<T>& a, const Fp8Matrix& rounded) {
  if constexpr (rounds_to_fp8<T>) {
    if ((a.made && input_fusion == InputFusion::any) ||
        !rounds_on_the_way(rounded, context.scaling) || a.width % chunk != 0 || a.width > 4096)
      return false;
    if (a.width <= 1024)
      launch_rounded<norm, input_fusion, 4>(context, a, rounded);
    else
      launch_rounded<norm, input_fusion, 16>(context, a, rounded);
    return true;
  }
  return false;
}

template <Norm norm, InputFusion input_fusion, OutputFusion output_fusion, class T>
bool launch_forward(const Context& context, const Forward<T>& a) {
  return with_shape(a.width, [&](auto shape) {
    constexpr int threads = shape.threads_per_row, packs = shape.packs_per_thread;
    constexpr int rows = rows_per_block<threads, packs>;
    const dim3 blocks(static_cast<unsigned>(divide_up(a.rows, rows))), block(threads, rows);
    const auto kernel = &norm_rows<norm, input_fusion, output_fusion, threads, packs, T>;
    if (!a.made)
      return launch_early("norm_forward", kernel, blocks, block, 0, stream_of(context), a);
    kernel<<<blocks, block, 0, stream_of(context)>>>(a);  // it may follow no kernel, but a copy
    check_launch("norm_forward of a sum");
  });
}

template <Norm norm, InputFusion input_fusion, class T>
bool launch(const Context& context, const Forward<T>& a, const NormForward<T>& call) {
  if (a.coded.codes) {
    if constexpr (input_fusion == InputFusion::any)
      return launch_forward<norm, input_fusion, OutputFusion::coded>(context, a);
    return false;
  }
  if (launch_rounded<norm, input_fusion>(context, a, call.rounded)) return true;
  if (!launch_forward<norm, input_fusion, OutputFusion::plain>(context, a)) return false;
  round_stored(stream_of(context), call.y, call.rounded, context.scaling);
  return true;
}

}  // namespace

template <class T>
bool NormForward<T>::native(const Context& context, const NormForward& call) {
  if (call.x.size() == 0) return true;
  if (cannot_round<T>(call.rounded)) return false;
  const T* bias_data = call.bias.size() ? call.bias.data() : nullptr;
  const Forward<T> a{call.x.data(),
                     call.gain.data(),
                     bias_data,
                     call.y.data(),
                     call.mean.data(),
                     call.rstd.data(),
                     static_cast<int>(call.x.extent(0)),
                     static_cast<int>(call.x.extent(1)),
                     static_cast<float>(call.eps),
                     raised_magnitude(call.rounded, context.scaling, stream_of(context)),
                     {data_of(call.made.a), data_of(call.made.b), data_of(call.made.c)},
                     call.made.wanted() ? call.made.to.data() : nullptr,
                     PackDropout(call.made.dropout),
                     RowCodes(call.coded)};
  const bool dropping = call.made.wanted() && call.made.dropout.probability > 0;
  if (dropping && (!a.terms[0] || !a.terms[1] || a.terms[2])) return false;
  if (!all_aligned(a.x, a.gain, a.bias, a.y, a.terms[0], a.terms[1], a.terms[2], a.coded.codes))
    return false;
  const bool centered = call.kind == Norm::layernorm;
  if (dropping)
    return centered ? launch<Norm::layernorm, InputFusion::dropping>(context, a, call)
                    : launch<Norm::rmsnorm, InputFusion::dropping>(context, a, call);
  return centered ? launch<Norm::layernorm, InputFusion::any>(context, a, call)
                  : launch<Norm::rmsnorm, InputFusion::any>(context, a, call);
}

TERN_INSTANTIATE_NATIVE(NormForward)

}  // namespace tern::ops
