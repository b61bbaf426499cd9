/// Rows of a rank's part of the logits: their figures, and gradients in place.
#include "ops/loss/vocabulary.hpp"

#include "ops/loss/cuda/detail/logit_rows.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

/// A rank's logits: columns of tokens from `first` on, of which `here` are no padding.
template <class T>
struct PartRows {
  T* logits;  // (C, width)
  const std::int32_t* targets;
  int width, first, here;

  __device__ T* row() const { return logits + std::size_t(blockIdx.x) * width; }
  /// The target's column; outside of [0, here): on another rank.
  __device__ int target() const { return targets[blockIdx.x] - first; }
};

/// The largest logit, and the lowest column that has it.
struct Best {
  float logit;
  int column;

  __device__ void raise(const Best& other) {
    if (other.logit > logit || (other.logit == logit && other.column < column)) *this = other;
  }
};

/// On all threads of the block; a barrier.
__device__ Best block_best(Best mine) {
  __shared__ Best of_warp[row_threads / warp_size];
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    mine.raise({__shfl_xor_sync(0xffffffffu, mine.logit, offset),
                __shfl_xor_sync(0xffffffffu, mine.column, offset)});
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = mine;
  __syncthreads();
  Best best = of_warp[0];
  for (int w = 1; w < row_threads / warp_size; ++w) best.raise(of_warp[w]);
  return best;
}

// One block per row. `figures` (C, row_figures).
template <class T>
__global__ void __launch_bounds__(row_threads) part_figures(PartRows<T> a, float4* figures) {
  const T* row = a.row();
  const int target = a.target();
  LogSumExp sum = LogSumExp::empty();
  Best best{-CUDART_INF_F, a.here};
  for (int column = threadIdx.x * pack_size; column < a.here; column += row_threads * pack_size) {
    Pack pack = Pack::load(row + column);
    for (int i = 0; i < pack_size; ++i) {
      if (column + i >= a.here) pack.value[i] = -CUDART_INF_F;
      best.raise({pack.value[i], column + i});
      pack.value[i] *= log2_e;
    }
    sum.add(pack);
  }
  const LogSumExp total = block_sum(sum);
  const Best top = block_best(best);
  if (threadIdx.x > 0) return;
  const bool own = target >= 0 && target < a.here;
  figures[blockIdx.x] = {top.logit, total.sum, own ? float(row[target]) : CUDART_NAN_F,
                         a.here > 0 ? float(a.first + top.column) : 0.0f};
}

struct Gradient {
  const float *weights, *lse;
  float z_loss, per_cap, gradient_scale;  // per_cap: 1 / cap, or 0
};
template <class T>
__global__ void __launch_bounds__(row_threads) part_gradients(PartRows<T> a, Gradient g) {
  T* row = a.row();
  const int target = a.target();
  if (target + a.first < 0) return fill_zero(row, a.width);
  const float weight = g.weights[blockIdx.x] * g.gradient_scale, lse = g.lse[blockIdx.x];
  const float scale = weight * (1 + 2 * g.z_loss * lse), lse2 = lse * log2_e;
  for (int column = threadIdx.x * pack_size; column < a.width; column += row_threads * pack_size) {
    Pack pack = Pack::load(row + column);
    for (int i = 0; i < pack_size; ++i) {
      const float share = pack.value[i] * g.per_cap;
      float gradient = scale * exp2f(pack.value[i] * log2_e - lse2);
      if (column + i == target) gradient -= weight;
      pack.value[i] = column + i < a.here ? gradient * (1 - share * share) : 0.0f;
    }
    pack.store(row + column);
  }
}

template <class T>
PartRows<T> part_rows(Matrix<T> logits, std::size_t first, std::size_t vocabulary,
                      Vector<const std::int32_t> targets) {
  const std::size_t width = logits.extent(1);
  return {logits.data(), targets.data(), static_cast<int>(width), static_cast<int>(first),
          columns_here(width, first, vocabulary)};
}

}  // namespace

template <class T>
bool RowParts<T>::native(const Context& context, const RowParts& call) {
  if (call.logits.size() == 0) return true;
  if (call.logits.extent(1) % pack_size != 0 ||
      !all_aligned(call.logits.data(), call.figures.data()))
    return false;
  const auto rows = static_cast<unsigned>(call.logits.extent(0));
  part_figures<<<rows, row_threads, 0, stream_of(context)>>>(
      part_rows(call.logits, call.first, call.vocabulary, call.targets),
      reinterpret_cast<float4*>(call.figures.data()));
  check_launch("row_parts");
  return true;
}

template <class T>
bool RowGradients<T>::native(const Context& context, const RowGradients& call) {
  if (call.logits.size() == 0) return true;
  if (call.logits.extent(1) % pack_size != 0 || !all_aligned(call.logits.data())) return false;
  const Gradient gradient{call.weights.data(), call.lse.data(),
                          static_cast<float>(call.options.z_loss),
                          static_cast<float>(call.options.cap > 0 ? 1 / call.options.cap : 0),
                          static_cast<float>(call.options.gradient_scale)};
  const auto rows = static_cast<unsigned>(call.logits.extent(0));
  part_gradients<<<rows, row_threads, 0, stream_of(context)>>>(
      part_rows(call.logits, call.first, call.options.vocabulary, call.targets), gradient);
  check_launch("row_gradients");
  return true;
}

TERN_INSTANTIATE_NATIVE(RowParts)
TERN_INSTANTIATE_NATIVE(RowGradients)

}  // namespace tern::ops
