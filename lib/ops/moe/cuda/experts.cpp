#include "ops/moe/experts.hpp"
#include "ops/core/cuda/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int row_warps = 4;         // rows per block, one warp each
constexpr int max_experts = 8 * 32;  // limit of a warp's registers
constexpr unsigned all_lanes = 0xffffffffu;

__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ float warp_max(float value) {
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(all_lanes, value, offset));
  return value;
}

/// Row of this warp; lanes take columns lane, lane + 32, ...
struct WarpRow {
  int lane = static_cast<int>(threadIdx.x) % warp_size;
  std::size_t row = std::size_t(blockIdx.x) * row_warps + threadIdx.x / warp_size;
};

/// One warp per row of logits, `shares` of them per lane.
template <int shares, class T>
__global__ void route_rows(const T* logits, std::size_t rows, int experts, int k, bool renormalize,
                           float* probabilities, float* weights, std::int32_t* chosen) {
  const WarpRow at;
  if (at.row >= rows) return;
  float value[shares], total = 0, top = minus_infinity();
  bool taken[shares];
#pragma unroll
  for (int s = 0; s < shares; ++s) {
    const int e = at.lane + s * warp_size;
    taken[s] = e >= experts;
    value[s] = taken[s] ? minus_infinity() : float(logits[at.row * experts + e]);
    top = fmaxf(top, value[s]);
  }
  top = warp_max(top);
#pragma unroll
  for (int s = 0; s < shares; ++s)
    if (!taken[s]) total += expf(value[s] - top);
  total = warp_sum(total);
#pragma unroll
  for (int s = 0; s < shares; ++s)
    if (!taken[s])
      probabilities[at.row * experts + at.lane + s * warp_size] = expf(value[s] - top) / total;
  float sum = 0;
  for (int j = 0; j < k; ++j) {
    // NaN and -infinity rank above the initial `best`, so they can be chosen if nothing else is
    // left.
    constexpr float least = -3.402823466e38f;
    float best = minus_infinity();
    int where = experts;
#pragma unroll
    for (int s = 0; s < shares; ++s) {
      const float rank = value[s] > least ? value[s] : least;
      if (!taken[s] && rank > best) best = rank, where = at.lane + s * warp_size;
    }
    for (int offset = warp_size / 2; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(all_lanes, best, offset);
      const int its = __shfl_xor_sync(all_lanes, where, offset);
      if (other > best || (other == best && its < where)) best = other, where = its;
    }
    float mine = 0;
#pragma unroll
    for (int s = 0; s < shares; ++s)
      if (where == at.lane + s * warp_size) taken[s] = true, mine = value[s];
    const float logit = __shfl_sync(all_lanes, mine, where % warp_size);
    const float probability = expf(logit - top) / total;
    sum += probability;
    if (at.lane == 0) {
      chosen[at.row * k + j] = where;
      weights[at.row * k + j] = probability;
    }
  }
  if (!renormalize || at.lane != 0) return;
  for (int j = 0; j < k; ++j) weights[at.row * k + j] /= sum;
}

constexpr int sort_threads = 512;

/// Sum of the warps' counts over the block, and over the warps before this one. Two barriers.
struct BlockCount {
  int all, before;
  __device__ BlockCount(int of_warp, int* shared) : all(0), before(0) {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    __syncthreads();
    if (threadIdx.x % warp_size == 0) shared[warp] = of_warp;
    __syncthreads();
    for (int w = 0; w < sort_threads / warp_size; ++w) {
      if (w < warp) before += shared[w];
      all += shared[w];
    }
  }
};

/// One block per expert: its rows begin at the number of pairs with lower experts; its pairs follow
/// in order.
__global__ void __launch_bounds__(sort_threads) sort_by_expert(Routing to, int pairs, int k) {
  __shared__ int shared[sort_threads / warp_size];
  const std::int32_t* of = to.experts.data();
  const int expert = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % warp_size;
  int lower = 0;
  for (int p = thread; p < pairs; p += sort_threads) lower += of[p] < expert;
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    lower += __shfl_xor_sync(all_lanes, lower, offset);
  int row = BlockCount(lower, shared).all;
  if (thread == 0) {
    to.offsets(expert) = row;
    if (blockIdx.x + 1 == gridDim.x) to.offsets(expert + 1) = pairs;
  }
  for (int first = 0; first < pairs; first += sort_threads) {
    const int pair = first + thread;
    const bool mine = pair < pairs && of[pair] == expert;
    const unsigned ballot = __ballot_sync(all_lanes, mine);
    const BlockCount count(__popc(ballot), shared);
    if (mine) {
      const int at = row + count.before + __popc(ballot & ((1u << lane) - 1));
      to.pairs(at) = pair;
      to.tokens(at) = pair / k;
      to.rows.data()[pair] = at;
    }
    row += count.all;
  }
}

template <class T>
__global__ void swiglu_rows(const T* x, const float* weights, const std::int32_t* pairs, T* y,
                            std::size_t rows, int width) {
  const WarpRow at;
  if (at.row >= rows) return;
  const T* from = x + at.row * 2 * width;
  const float weight = weights[pairs[at.row]];
  for (int c = at.lane * pack_size; c < width; c += warp_size * pack_size) {
    Pack gate = Pack::load(from + c);
    const Pack up = Pack::load(from + width + c);
    for (int i = 0; i < pack_size; ++i)
      gate.value[i] *= weight * sigmoid(gate.value[i]) * up.value[i];
    gate.store(y + at.row * width + c);
  }
}

template <class T>
__global__ void swiglu_rows_backward(const T* x, const float* weights, const std::int32_t* pairs,
                                     const T* dy, T* dx, float* dweights, std::size_t rows,
                                     int width) {
  const WarpRow at;
  if (at.row >= rows) return;
  const std::size_t start = at.row * 2 * width;
  const float weight = weights[pairs[at.row]];
  float dweight = 0;
  for (int c = at.lane * pack_size; c < width; c += warp_size * pack_size) {
    Pack gate = Pack::load(x + start + c), up = Pack::load(x + start + width + c);
    const Pack gradient = Pack::load(dy + at.row * width + c);
    for (int i = 0; i < pack_size; ++i) {
      const float g = gate.value[i], u = up.value[i], s = sigmoid(g), d = gradient.value[i];
      dweight += d * g * s * u;
      gate.value[i] = weight * d * u * s * (1 + g * (1 - s));
      up.value[i] = weight * d * g * s;
    }
    gate.store(dx + start + c);
    up.store(dx + start + width + c);
  }
  dweight = warp_sum(dweight);
  if (at.lane == 0) dweights[pairs[at.row]] = dweight;
}

constexpr int combine_threads = 256;

/// One thread per pack of a token.
template <class T>
__global__ void combine_packs(const T* values, const std::int32_t* rows, int k, const T* added,
                              T* to, std::size_t packs, int width) {
  const std::size_t at = std::size_t(blockIdx.x) * combine_threads + threadIdx.x;
  if (at >= packs) return;
  const std::size_t of_row = width / pack_size, token = at / of_row;
  const std::size_t column = at % of_row * pack_size;
  Pack sum{};
  for (int j = 0; j < k; ++j) {
    const Pack value = Pack::load(values + std::size_t(rows[token * k + j]) * width + column);
    for (int i = 0; i < pack_size; ++i) sum.value[i] += value.value[i];
  }
  if (added) {
    const Pack base = Pack::load(added + at * pack_size);
    for (int i = 0; i < pack_size; ++i) sum.value[i] += base.value[i];
  }
  sum.store(to + at * pack_size);
}

}  // namespace

template <class T>
bool Route<T>::native(const Context& context, const Route& call) {
  const std::size_t rows = call.logits.extent(0), count = call.logits.extent(1);
  if (rows == 0) return true;
  if (count > max_experts) return false;
  const auto with = [&](auto shares) {
    route_rows<shares()>
        <<<blocks_for(rows, row_warps), row_warps * warp_size, 0, stream_of(context)>>>(
            call.logits.data(), rows, static_cast<int>(count),
            static_cast<int>(call.experts.extent(1)), call.renormalize, call.probabilities.data(),
            call.weights.data(), call.experts.data());
  };
  if (count <= 2 * warp_size)
    with(std::integral_constant<int, 2>());
  else if (count <= 4 * warp_size)
    with(std::integral_constant<int, 4>());
  else
    with(std::integral_constant<int, 8>());
  check_launch("route");
  return true;
}

bool SortPairs::native(const Context& context, const SortPairs& call) {
  const auto groups = static_cast<unsigned>(call.routing.offsets.extent(0) - 1);
  sort_by_expert<<<groups, sort_threads, 0, stream_of(context)>>>(
      call.routing, static_cast<int>(call.routing.pairs.extent(0)),
      static_cast<int>(call.routing.experts.extent(1)));
  check_launch("sort_pairs");
  return true;
}

template <class T>
bool WeightedSwiglu<T>::native(const Context& context, const WeightedSwiglu& call) {
  if (call.y.size() == 0) return true;
  const std::size_t rows = call.y.extent(0), width = call.y.extent(1);
  if (width % pack_size != 0 || !all_aligned(call.x.data(), call.y.data())) return false;
  swiglu_rows<<<blocks_for(rows, row_warps), row_warps * warp_size, 0, stream_of(context)>>>(
      call.x.data(), call.weights.data(), call.pairs.data(), call.y.data(), rows,
      static_cast<int>(width));
  check_launch("weighted_swiglu");
  return true;
}

template <class T>
bool WeightedSwigluBackward<T>::native(const Context& context, const WeightedSwigluBackward& call) {
  if (call.dy.size() == 0) return true;
  const std::size_t rows = call.dy.extent(0), width = call.dy.extent(1);
  if (width % pack_size != 0 || !all_aligned(call.x.data(), call.dy.data(), call.dx.data()))
    return false;
  swiglu_rows_backward<<<blocks_for(rows, row_warps), row_warps * warp_size, 0,
                         stream_of(context)>>>(call.x.data(), call.weights.data(),
                                               call.pairs.data(), call.dy.data(), call.dx.data(),
                                               call.dweights.data(), rows, static_cast<int>(width));
  check_launch("weighted_swiglu_backward");
  return true;
}

template <class T>
bool Combine<T>::native(const Context& context, const Combine& call) {
  if (call.to.size() == 0) return true;
  const std::size_t width = call.to.extent(1), packs = call.to.size() / pack_size;
  const T* base = call.added.extent(0) > 0 ? call.added.data() : nullptr;
  if (width % pack_size != 0 || !all_aligned(call.values.data(), call.to.data()) ||
      (base && !aligned_16(base)))
    return false;
  combine_packs<<<blocks_for(packs, combine_threads), combine_threads, 0, stream_of(context)>>>(
      call.values.data(), call.rows.data(), static_cast<int>(call.rows.extent(1)), base,
      call.to.data(), packs, static_cast<int>(width));
  check_launch("combine");
  return true;
}

TERN_INSTANTIATE_NATIVE(Route)
TERN_INSTANTIATE_NATIVE(WeightedSwiglu)
TERN_INSTANTIATE_NATIVE(WeightedSwigluBackward)
TERN_INSTANTIATE_NATIVE(Combine)

}  // namespace tern::ops
