/// RMSNorm and LayerNorm, backward. Rows are shared among threads as in forward.
#include "ops/core/cuda/library.hpp"
#include "ops/elementwise/cuda/dropout.hpp"
#include "ops/norm/cuda/add_columns.hpp"
#include "ops/norm/cuda/detail/rows.hpp"
#include "ops/norm/norm.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int blocks_per_multiprocessor = 6;

template <class T>
struct Backward {
  const T *dy, *dy_added, *x, *gain, *residual;  // dy_added, residual: or null
  const float *mean, *rstd;
  T* dx;
  float *dgain_partial, *dbias_partial;  // (blocks, width); dbias_partial null: none
  int rows, width;
  std::uint32_t* magnitude;  // or null
  T* dropped;                // if With::dropped
  PackDropout dropout;
};

/// What the kernel also does: add to dy, or drop dx.
enum class With { nothing, added, dropped };

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
template <Norm norm, With with, int threads, int packs, class T>
__global__ void __launch_bounds__(threads* rows_per_block<threads, packs>)
    norm_rows_backward(Backward<T> a) {
  constexpr int groups = rows_per_block<threads, packs>;
  constexpr bool added = with == With::added;
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
    if constexpr (added) {
#pragma unroll
      for (int p = 0; p < packs; ++p)
        dy[p] = RawPack<T>::round(sum_of(dy[p].pack(), more[p].pack()));
    }
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
      const RawPack<T> rounded = RawPack<T>::round(result);
      rounded.store(a.dx + start + column);
      if constexpr (with == With::dropped) {
        result = a.dropout.of(rounded.pack(), row, column);
        result.store(a.dropped + start + column);
      }
      most = larger(most, result);
    }
  }
  if (a.magnitude) raise_magnitude(a.magnitude, most);
  write_partial<threads, packs>(dgain, sums, a.dgain_partial, a.width);
  if (a.dbias_partial) write_partial<threads, packs>(dbias, sums, a.dbias_partial, a.width);
}

template <Norm norm, With with, class T>
bool launch_backward(const Context& context, Backward<T> a, float* dgain, float* dbias) {
  return with_shape(a.width, [&](auto shape) {
    constexpr int threads = shape.threads_per_row, packs = shape.packs_per_thread;
    constexpr int rows = rows_per_block<threads, packs>;
    const int blocks =
        std::min(divide_up(a.rows, rows), blocks_per_multiprocessor * multiprocessors());
    const std::size_t partial = std::size_t(blocks) * a.width;
    a.dgain_partial = context.library->scratch(2 * partial);
    a.dbias_partial = dbias ? a.dgain_partial + partial : nullptr;
    norm_rows_backward<norm, with, threads, packs>
        <<<blocks, dim3(threads, rows), rows * a.width * sizeof(float), stream_of(context)>>>(a);
    add_columns(context, a.dgain_partial, blocks, a.width, dgain);
    if (dbias) add_columns(context, a.dbias_partial, blocks, a.width, dbias);
    check_launch("norm_backward");
  });
}

template <Norm norm, class T>
bool launch(const Context& context, const Backward<T>& a, float* dgain, float* dbias) {
  if (a.dropped) return launch_backward<norm, With::dropped>(context, a, dgain, dbias);
  if (a.dy_added) return launch_backward<norm, With::added>(context, a, dgain, dbias);
  return launch_backward<norm, With::nothing>(context, a, dgain, dbias);
}

}  // namespace

template <class T>
bool NormBackward<T>::native(const Context& context, const NormBackward& call) {
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
                      start_magnitude(call.magnitude, stream_of(context)),
                      call.dropped.size() > 0 ? call.dropped.data() : nullptr,
                      PackDropout(call.dropout)};
  float* dbias_data = call.dbias.size() ? call.dbias.data() : nullptr;
  if (!all_aligned(a.dy, a.dy_added, a.x, a.gain, a.residual, a.dx, a.dropped)) return false;
  if (a.dropped && a.dy_added) return false;
  return call.kind == Norm::layernorm
             ? launch<Norm::layernorm>(context, a, call.dgain.data(), dbias_data)
             : launch<Norm::rmsnorm>(context, a, call.dgain.data(), nullptr);
}

TERN_INSTANTIATE_NATIVE(NormBackward)

}  // namespace tern::ops
