/// RMSNorm and rotation per head: a thread holds eight pairs of numbers of a head, E / 2 apart;
/// neighboring lanes of a warp hold the rest.
#include "ops/attention/head_norm.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/library.hpp"
#include "ops/norm/cuda/add_columns.hpp"
#include "ops/norm/norm.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256, blocks_per_multiprocessor = 8;
constexpr int vectors_per_thread = 2;  // whose loads are in flight at once

/// Vectors of (B, T, heads, E), numbered (b T + t) heads + h.
template <class T>
struct Vectors {
  T* data;
  std::int64_t sequence_stride, token_stride, head_stride;
  int tokens, heads, count;

  __device__ T* at(int n) const {
    const int row = n / heads;
    return data + row / tokens * sequence_stride + row % tokens * token_stride +
           n % heads * head_stride;
  }
};

/// What a thread holds of a vector, as stored.
template <class T>
struct RawPairs {
  RawPack<T> low = {}, high = {};
  __device__ static RawPairs load(const T* from, int half) {
    return {RawPack<T>::load(from), RawPack<T>::load(from + half)};
  }
};
struct Pairs {
  Pack low, high;
  template <class T>
  __device__ explicit Pairs(const RawPairs<T>& raw) : low(raw.low.pack()), high(raw.high.pack()) {}
  template <class T>
  __device__ void store(T* to, int half) const {
    low.store(to), high.store(to + half);
  }
};

/// Table of angles and positions; table null: no rotation.
struct Turns {
  const float* table;
  const std::int32_t* positions;  // (B*T), or null: first + token
  int first, tokens;

  /// Turns the pairs from `column` on of a vector in `row`, forward (sign 1) or back (-1).
  __device__ void turn(Pairs& x, int row, int column, int half, float sign) const {
    if (!table) return;
    const int position = positions ? positions[row] : first + row % tokens;
    const float* from = table + std::size_t(position) * 2 * half + column;
    const Pack cosine = Pack::load(from), sine = Pack::load(from + half);
    for (int i = 0; i < pack_size; ++i) {
      const float c = cosine.value[i], s = sign * sine.value[i];
      const float l = x.low.value[i], h = x.high.value[i];
      x.low.value[i] = l * c - h * s;
      x.high.value[i] = h * c + l * s;
    }
  }
};

/// Sum over `lanes` neighboring lanes, a power of two, on all of them.
template <int lanes>
__device__ float lanes_sum(float value) {
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <class T>
struct Forward {
  Vectors<const T> x;
  Vectors<T> y;
  const T* gain;
  Turns turns;
  float eps;
  float* rstd;  // or null
};

// lanes: E / 16. All lanes of a warp take part in the sums.
template <int lanes, class T>
__global__ void __launch_bounds__(block_threads) head_norm(const Forward<T> a) {
  constexpr int half = lanes * pack_size, size = 2 * half, groups = block_threads / lanes;
  const int column = threadIdx.x % lanes * pack_size;
  const int first = blockIdx.x * groups * vectors_per_thread + threadIdx.x / lanes;
  const Pairs gain(RawPairs<T>::load(a.gain + column, half));
  RawPairs<T> raw[vectors_per_thread];
#pragma unroll
  for (int v = 0; v < vectors_per_thread; ++v)
    if (const int n = first + v * groups; n < a.x.count)
      raw[v] = RawPairs<T>::load(a.x.at(n) + column, half);
#pragma unroll
  for (int v = 0; v < vectors_per_thread; ++v) {
    const int n = first + v * groups;
    Pairs value(raw[v]);
    float squares = 0;
    for (int i = 0; i < pack_size; ++i)
      squares +=
          value.low.value[i] * value.low.value[i] + value.high.value[i] * value.high.value[i];
    const float r = 1 / sqrtf(lanes_sum<lanes>(squares) / size + a.eps);
    if (n >= a.x.count) continue;
    for (int i = 0; i < pack_size; ++i) {
      value.low.value[i] *= r * gain.low.value[i];
      value.high.value[i] *= r * gain.high.value[i];
    }
    a.turns.turn(value, n / a.x.heads, column, half, 1.0f);
    value.store(a.y.at(n) + column, half);
    if (a.rstd && column == 0) a.rstd[n] = r;
  }
}

template <class T>
struct Backward {
  Vectors<T> dx;
  Vectors<const T> x;
  const T* gain;
  Turns turns;
  const float* rstd;
  float* partial;  // (blocks, E): each block's sums of dgain
};

/// gradient: of a head's result, turned back; becomes that of x. sum += gradient xhat.
template <int lanes>
__device__ void through_norm(Pairs& gradient, Pairs value, const Pairs& gain, float r,
                             float (&sum)[2][pack_size]) {
  Pack* const d[] = {&gradient.low, &gradient.high};
  Pack* const x[] = {&value.low, &value.high};
  const Pack* const g[] = {&gain.low, &gain.high};
  float along = 0;
#pragma unroll
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < pack_size; ++i) {
      float &dy = d[part]->value[i], &xhat = x[part]->value[i];
      xhat *= r;
      sum[part][i] += dy * xhat;
      dy *= g[part]->value[i];
      along += dy * xhat;
    }
  along = lanes_sum<lanes>(along) / (2 * lanes * pack_size);
#pragma unroll
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < pack_size; ++i)
      d[part]->value[i] = r * (d[part]->value[i] - x[part]->value[i] * along);
}

// With xhat = x rstd and g = dy gain: dx = rstd (g - xhat mean(g xhat)).
template <int lanes, class T>
__global__ void __launch_bounds__(block_threads) head_norm_backward_rows(const Backward<T> a) {
  constexpr int half = lanes * pack_size, size = 2 * half, groups = block_threads / lanes;
  __shared__ float shared[groups][size + 1];
  const int group = threadIdx.x / lanes, column = threadIdx.x % lanes * pack_size;
  const Pairs gain(RawPairs<T>::load(a.gain + column, half));
  float dgain[2][pack_size] = {};
  constexpr int at_once = groups * vectors_per_thread;
  // All lanes of a warp make the same number of iterations.
  for (int first = blockIdx.x * at_once; first < a.dx.count; first += gridDim.x * at_once) {
    RawPairs<T> raw_gradient[vectors_per_thread], raw_value[vectors_per_thread];
    float r[vectors_per_thread] = {};
#pragma unroll
    for (int v = 0; v < vectors_per_thread; ++v)
      if (const int n = first + v * groups + group; n < a.dx.count) {
        raw_gradient[v] = RawPairs<T>::load(a.dx.at(n) + column, half);
        raw_value[v] = RawPairs<T>::load(a.x.at(n) + column, half);
        r[v] = a.rstd[n];
      }
#pragma unroll
    for (int v = 0; v < vectors_per_thread; ++v) {
      const int n = first + v * groups + group;
      Pairs gradient(raw_gradient[v]);
      if (n < a.dx.count) a.turns.turn(gradient, n / a.dx.heads, column, half, -1.0f);
      through_norm<lanes>(gradient, Pairs(raw_value[v]), gain, r[v], dgain);
      if (n < a.dx.count) gradient.store(a.dx.at(n) + column, half);
    }
  }
#pragma unroll
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < pack_size; ++i) shared[group][part * half + column + i] = dgain[part][i];
  __syncthreads();
  for (int c = threadIdx.x; c < size; c += block_threads) {
    float sum = 0;
    for (int g = 0; g < groups; ++g) sum += shared[g][c];
    a.partial[std::size_t(blockIdx.x) * size + c] = sum;
  }
}

template <int n>
struct Lanes {
  static constexpr int value = n;
};
/// Calls f with the number of lanes for vectors of `size`; false if there is none.
template <class F>
bool with_lanes(std::size_t size, const F& f) {
  switch (size) {
    case 32:
      f(Lanes<2>{});
      return true;
    case 64:
      f(Lanes<4>{});
      return true;
    case 128:
      f(Lanes<8>{});
      return true;
    case 256:
      f(Lanes<16>{});
      return true;
    default:
      return false;
  }
}

template <class T>
bool packed(const Heads<T>& x) {
  return x.stride(0) % pack_size == 0 && x.stride(1) % pack_size == 0 &&
         x.stride(2) % pack_size == 0 && x.stride(3) == 1 && all_aligned(x.data());
}

template <class T>
Vectors<T> vectors_of(const Heads<T>& x) {
  return {x.data(),
          static_cast<std::int64_t>(x.stride(0)),
          static_cast<std::int64_t>(x.stride(1)),
          static_cast<std::int64_t>(x.stride(2)),
          static_cast<int>(x.extent(1)),
          static_cast<int>(x.extent(2)),
          static_cast<int>(x.extent(0) * x.extent(1) * x.extent(2))};
}

template <class Call>
Turns turns_of(const Call& call) {
  const Vector<const std::int32_t>& rows = call.positions.rows;
  return {call.table.size() > 0 ? call.table.data() : nullptr,
          rows.size() > 0 ? rows.data() : nullptr, call.positions.first,
          static_cast<int>(call.x.extent(1))};
}

}  // namespace

template <class T>
bool HeadNormForward<T>::native(const Context& context, const HeadNormForward& call) {
  if (call.x.size() == 0) return true;
  const Forward<T> a{vectors_of(call.x),
                     vectors_of(call.y),
                     call.gain.data(),
                     turns_of(call),
                     static_cast<float>(call.eps),
                     call.rstd.size() > 0 ? call.rstd.data() : nullptr};
  return packed(call.x) && packed(call.y) && all_aligned(a.gain, a.turns.table) &&
         with_lanes(call.x.extent(3), [&](auto of) {
           constexpr int lanes = decltype(of)::value;
           const std::size_t threads =
               divide_up<std::size_t>(a.x.count, vectors_per_thread) * lanes;
           head_norm<lanes>
               <<<blocks_for(threads, block_threads), block_threads, 0, stream_of(context)>>>(a);
           check_launch("head_norm_forward");
         });
}

template <class T>
bool HeadNormBackward<T>::native(const Context& context, const HeadNormBackward& call) {
  if (call.dx.size() == 0) return true;
  Backward<T> a{vectors_of(call.dx), vectors_of(call.x), call.gain.data(),
                turns_of(call),      call.rstd.data(),   nullptr};
  return packed(call.dx) && packed(call.x) && all_aligned(a.gain, a.turns.table) &&
         with_lanes(call.dx.extent(3), [&](auto of) {
           constexpr int lanes = decltype(of)::value, size = 2 * lanes * pack_size;
           constexpr int at_once = block_threads / lanes * vectors_per_thread;
           const int blocks = std::min(divide_up(a.dx.count, at_once),
                                       blocks_per_multiprocessor * multiprocessors());
           a.partial = context.library->scratch(std::size_t(blocks) * size);
           head_norm_backward_rows<lanes><<<blocks, block_threads, 0, stream_of(context)>>>(a);
           add_columns(context, a.partial, blocks, size, call.dgain.data());
           check_launch("head_norm_backward");
         });
}

TERN_INSTANTIATE_NATIVE(HeadNormForward)
TERN_INSTANTIATE_NATIVE(HeadNormBackward)

}  // namespace tern::ops
