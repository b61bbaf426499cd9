/// RMSNorm and LayerNorm. A row belongs to a warp, or to a block where it is long, and stays in
/// registers between its passes: every number crosses the memory bus once.
#include "ops/norm.hpp"
#include "ops/cuda/add_columns.hpp"
#include "ops/cuda/library.hpp"
#include "ops/cuda/rounding.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int min_block = 128;
constexpr int blocks_per_multiprocessor = 6;  // for the backward kernel

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

template <class T>
const T* data_of(const Matrix<const T>& m) {
  return m.size() > 0 ? m.data() : nullptr;
}

/// `threads` threads per row, with up to `packs` packs each.
template <int threads, int packs>
constexpr int rows_per_block = threads < min_block ? min_block / threads : 1;

template <Norm norm, int threads, int packs, class T>
__global__ void __launch_bounds__(threads* rows_per_block<threads, packs>) norm_rows(Forward<T> a) {
  __shared__ float shared[threads / warp_size];
  const int row = blockIdx.x * rows_per_block<threads, packs> + threadIdx.y;
  release_next();
  await_previous();
  if (row >= a.rows) return;
  const std::size_t start = std::size_t(row) * a.width;
  Pack x[packs];
  RawPack<T> gains[packs];  // in flight at once with x
  float sum = 0, squares = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    if (column < a.width)
      x[p] = input(a, start + column), gains[p] = RawPack<T>::load(a.gain + column);
    else
      x[p] = Pack{};
  }
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
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
    y.store(a.y + start + column);
    most = larger(most, y);
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
template <Norm norm, int packs>
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
    float sum = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * warp_size + lane) * pack_size;
      x[p] = column < a.width ? RawPack<T>::load(a.x + start + column) : RawPack<T>{};
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

__device__ inline Pack sum_of(const Pack& a, const Pack& b) {
  Pack sum;
  for (int i = 0; i < pack_size; ++i) sum.value[i] = a.value[i] + b.value[i];
  return sum;
}

template <class T>
struct Backward {
  const T *dy, *dy_added, *x, *gain, *residual;  // dy_added, residual: or null
  const float *mean, *rstd;
  T* dx;
  float *dgain_partial, *dbias_partial;  // (blocks, width); dbias_partial null: none
  int rows, width;
  std::uint32_t* magnitude;  // or null
};

/// Writes the block's sums over its groups of threads to one row of `partial`.
template <int threads, int packs>
__device__ void write_partial(const float (&sum)[packs][pack_size], float* shared, float* partial,
                              int width) {
  constexpr int groups = rows_per_block<threads, packs>;
  __syncthreads();
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    if (column >= width) break;
    for (int i = 0; i < pack_size; ++i) shared[threadIdx.y * width + column + i] = sum[p][i];
  }
  __syncthreads();
  for (int c = threadIdx.y * threads + threadIdx.x; c < width; c += threads * groups) {
    float total = 0;
    for (int g = 0; g < groups; ++g) total += shared[g * width + c];
    partial[std::size_t(blockIdx.x) * width + c] = total;
  }
}

// With n = (x - mean) rstd and g = dy * gain: dx = rstd (g - n avg(g n) - avg(g)), the last term
// for LayerNorm only. All loads of a row are issued before the first sum.
template <Norm norm, bool added, int threads, int packs, class T>
__global__ void __launch_bounds__(threads* rows_per_block<threads, packs>)
    norm_rows_backward(Backward<T> a) {
  constexpr int groups = rows_per_block<threads, packs>;
  extern __shared__ float sums[];  // (groups, width)
  __shared__ float shared[threads / warp_size];
  float dgain[packs][pack_size] = {}, dbias[packs][pack_size] = {}, most = 0;
  RawPack<T> gain[packs];
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + threadIdx.x) * pack_size;
    gain[p] = column < a.width ? RawPack<T>::load(a.gain + column) : RawPack<T>{};
  }
  for (int row = blockIdx.x * groups + threadIdx.y; row < a.rows; row += gridDim.x * groups) {
    const std::size_t start = std::size_t(row) * a.width;
    RawPack<T> x[packs], dy[packs], dx[packs], more[added ? packs : 1];
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * threads + threadIdx.x) * pack_size;
      const bool inside = column < a.width;
      x[p] = inside ? RawPack<T>::load(a.x + start + column) : RawPack<T>{};
      dy[p] = inside ? RawPack<T>::load(a.dy + start + column) : RawPack<T>{};
      dx[p] = inside && a.residual ? RawPack<T>::load(a.residual + start + column) : RawPack<T>{};
      if constexpr (added)
        more[p] = inside ? RawPack<T>::load(a.dy_added + start + column) : RawPack<T>{};
    }
    if constexpr (added)
#pragma unroll
      for (int p = 0; p < packs; ++p)
        dy[p] = RawPack<T>::round(sum_of(dy[p].pack(), more[p].pack()));
    const float rstd = a.rstd[row];
    const float mean = norm == Norm::layernorm ? a.mean[row] : 0.0f;
    float along = 0, constant = 0;  // nothing is added beyond the width, where gain and dy are 0
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const Pack value = x[p].pack(), gradient = dy[p].pack(), factor = gain[p].pack();
      for (int i = 0; i < pack_size; ++i) {
        const float n = (value.value[i] - mean) * rstd, d = gradient.value[i];
        const float g = d * factor.value[i];
        dgain[p][i] += d * n;
        if constexpr (norm == Norm::layernorm) dbias[p][i] += d;
        along += g * n;
        constant += g;
      }
    }
    along = group_sum<threads>(along, shared) / a.width;
    constant = norm == Norm::layernorm ? group_sum<threads>(constant, shared) / a.width : 0.0f;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int column = (p * threads + threadIdx.x) * pack_size;
      if (column >= a.width) break;
      const Pack value = x[p].pack(), gradient = dy[p].pack(), factor = gain[p].pack();
      Pack result = dx[p].pack();
      for (int i = 0; i < pack_size; ++i) {
        const float n = (value.value[i] - mean) * rstd, g = gradient.value[i] * factor.value[i];
        result.value[i] += rstd * (g - n * along - constant);
      }
      result.store(a.dx + start + column);
      most = larger(most, result);
    }
  }
  if (a.magnitude) raise_magnitude(a.magnitude, most);
  write_partial<threads, packs>(dgain, sums, a.dgain_partial, a.width);
  if (a.dbias_partial) write_partial<threads, packs>(dbias, sums, a.dbias_partial, a.width);
}

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

template <Norm norm, int packs>
void launch_rounded(const Context& context, const Forward<bf16>& a, const Fp8Matrix& rounded) {
  const int bytes = staged_words(a.width) * 4;
  const auto kernel = &norm_rows_to_fp8<norm, packs>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<blocks_for(a.rows, tile_rows), rounding_threads, bytes, stream_of(context)>>>(
      a, RoundingTarget(rounded, context.scaling));
  check_launch("norm_forward to fp8");
}
/// False if there is no kernel for the width.
template <Norm norm, class T>
bool launch_rounded(const Context& context, const Forward<T>& a, const Fp8Matrix& rounded) {
  if constexpr (rounds_to_fp8<T>) {
    if (a.made || !rounds_on_the_way(rounded, context.scaling) || a.width % chunk != 0 ||
        a.width > 4096)
      return false;
    if (a.width <= 1024)
      launch_rounded<norm, 4>(context, a, rounded);
    else
      launch_rounded<norm, 16>(context, a, rounded);
    return true;
  }
  return false;
}

template <Norm norm, class T>
bool launch_forward(const Context& context, const Forward<T>& a) {
  return with_shape(a.width, [&](auto shape) {
    constexpr int threads = shape.threads_per_row, packs = shape.packs_per_thread;
    constexpr int rows = rows_per_block<threads, packs>;
    const dim3 blocks(static_cast<unsigned>(divide_up(a.rows, rows))), block(threads, rows);
    const auto kernel = &norm_rows<norm, threads, packs, T>;
    if (!a.made)
      return launch_early("norm_forward", kernel, blocks, block, 0, stream_of(context), a);
    kernel<<<blocks, block, 0, stream_of(context)>>>(a);  // it may follow no kernel, but a copy
    check_launch("norm_forward of a sum");
  });
}

template <Norm norm, bool added, class T>
bool launch_backward(const Context& context, Backward<T> a, float* dgain, float* dbias) {
  return with_shape(a.width, [&](auto shape) {
    constexpr int threads = shape.threads_per_row, packs = shape.packs_per_thread;
    constexpr int rows = rows_per_block<threads, packs>;
    const int blocks =
        std::min(divide_up(a.rows, rows), blocks_per_multiprocessor * multiprocessors());
    const std::size_t partial = std::size_t(blocks) * a.width;
    a.dgain_partial = context.library->scratch(2 * partial);
    a.dbias_partial = dbias ? a.dgain_partial + partial : nullptr;
    norm_rows_backward<norm, added, threads, packs>
        <<<blocks, dim3(threads, rows), rows * a.width * sizeof(float), stream_of(context)>>>(a);
    add_columns(context, a.dgain_partial, blocks, a.width, dgain);
    if (dbias) add_columns(context, a.dbias_partial, blocks, a.width, dbias);
    check_launch("norm_backward");
  });
}

}  // namespace

template <class T>
bool native_norm_forward(const Context& context, const NormForward<T>& call) {
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
                     call.made.wanted() ? call.made.to.data() : nullptr};
  if (!all_aligned(a.x, a.gain, a.bias, a.y, a.terms[0], a.terms[1], a.terms[2])) return false;
  const bool centred = call.kind == Norm::layernorm;
  if (centred ? launch_rounded<Norm::layernorm>(context, a, call.rounded)
              : launch_rounded<Norm::rmsnorm>(context, a, call.rounded))
    return true;
  if (!(centred ? launch_forward<Norm::layernorm>(context, a)
                : launch_forward<Norm::rmsnorm>(context, a)))
    return false;
  round_stored(stream_of(context), call.y, call.rounded, context.scaling);
  return true;
}

template <class T>
bool native_norm_backward(const Context& context, const NormBackward<T>& call) {
  if (call.x.size() == 0) return true;
  const Backward<T> a{call.dy.data(),
                      data_of(call.dy_added),
                      call.x.data(),
                      call.gain.data(),
                      data_of(call.residual),
                      call.mean.data(),
                      call.rstd.data(),
                      call.dx.data(),
                      nullptr,
                      nullptr,
                      static_cast<int>(call.x.extent(0)),
                      static_cast<int>(call.x.extent(1)),
                      start_magnitude(call.magnitude, stream_of(context))};
  float* dbias_data = call.dbias.size() ? call.dbias.data() : nullptr;
  if (!all_aligned(a.dy, a.dy_added, a.x, a.gain, a.residual, a.dx)) return false;
  const bool centred = call.kind == Norm::layernorm;
  if (a.dy_added)
    return centred
               ? launch_backward<Norm::layernorm, true>(context, a, call.dgain.data(), dbias_data)
               : launch_backward<Norm::rmsnorm, true>(context, a, call.dgain.data(), nullptr);
  return centred
             ? launch_backward<Norm::layernorm, false>(context, a, call.dgain.data(), dbias_data)
             : launch_backward<Norm::rmsnorm, false>(context, a, call.dgain.data(), nullptr);
}

#define INSTANTIATE(T)                                              \
  template decltype(native_norm_forward<T>) native_norm_forward<T>; \
  template decltype(native_norm_backward<T>) native_norm_backward<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
