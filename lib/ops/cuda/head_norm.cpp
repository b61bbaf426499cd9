/// RMSNorm per head: a thread holds eight numbers of a head, neighbouring lanes of a warp the rest.
#include "ops/cuda/add_columns.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/library.hpp"
#include "ops/norm.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256, blocks_per_multiprocessor = 8;

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

/// Sum over `lanes` neighbouring lanes, a power of two, on all of them.
template <int lanes>
__device__ float lanes_sum(float value) {
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// lanes: E / 8.
template <int lanes, class T>
__global__ void __launch_bounds__(block_threads)
    head_norm_rows(Vectors<T> x, const T* gain, float eps, T* saved, float* rstd) {
  constexpr int size = lanes * pack_size;
  const int n = (blockIdx.x * block_threads + threadIdx.x) / lanes;
  const int column = threadIdx.x % lanes * pack_size;
  const bool inside = n < x.count;  // all lanes of a warp take part in the sum
  T* at = inside ? x.at(n) + column : nullptr;
  Pack value{};
  if (inside) value = Pack::load(at);
  float squares = 0;
  for (float v : value.value) squares += v * v;
  const float r = 1 / sqrtf(lanes_sum<lanes>(squares) / size + eps);
  if (!inside) return;
  value.store(saved + std::size_t(n) * size + column);
  const Pack factor = Pack::load(gain + column);
  for (int i = 0; i < pack_size; ++i) value.value[i] *= r * factor.value[i];
  value.store(at);
  if (column == 0) rstd[n] = r;
}

// With xhat = x rstd and g = dy gain: dx = rstd (g - xhat mean(g xhat)). partial (blocks, E): the
// block's sums of dy xhat.
template <int lanes, class T>
__global__ void __launch_bounds__(block_threads)
    head_norm_rows_backward(Vectors<T> dx, const T* saved, const T* gain, const float* rstd,
                            float* partial) {
  constexpr int size = lanes * pack_size, groups = block_threads / lanes;
  __shared__ float shared[groups][size + 1];
  const int group = threadIdx.x / lanes, column = threadIdx.x % lanes * pack_size;
  const Pack factor = Pack::load(gain + column);
  float dgain[pack_size] = {};
  const int stride = gridDim.x * groups;
  // All lanes of a warp make the same number of iterations.
  for (int first = blockIdx.x * groups; first < dx.count; first += stride) {
    const int n = first + group;
    const bool inside = n < dx.count;
    T* at = inside ? dx.at(n) + column : nullptr;
    Pack gradient{}, value{};
    if (inside) {
      gradient = Pack::load(at);
      value = Pack::load(saved + std::size_t(n) * size + column);
    }
    const float r = inside ? rstd[n] : 0.0f;
    float along = 0;
    for (int i = 0; i < pack_size; ++i) {
      value.value[i] *= r;
      along += gradient.value[i] * factor.value[i] * value.value[i];
      dgain[i] += gradient.value[i] * value.value[i];
    }
    along = lanes_sum<lanes>(along) / size;
    if (!inside) continue;
    for (int i = 0; i < pack_size; ++i)
      gradient.value[i] = r * (gradient.value[i] * factor.value[i] - value.value[i] * along);
    gradient.store(at);
  }
  for (int i = 0; i < pack_size; ++i) shared[group][column + i] = dgain[i];
  __syncthreads();
  for (int c = threadIdx.x; c < size; c += block_threads) {
    float sum = 0;
    for (int g = 0; g < groups; ++g) sum += shared[g][c];
    partial[std::size_t(blockIdx.x) * size + c] = sum;
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
      f(Lanes<4>{});
      return true;
    case 64:
      f(Lanes<8>{});
      return true;
    case 128:
      f(Lanes<16>{});
      return true;
    case 256:
      f(Lanes<32>{});
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

}  // namespace

template <class T>
bool native_head_norm_forward(const Context& context, Heads<T> x, Vector<const T> gain, double eps,
                              Matrix<T> saved, Vector<float> rstd) {
  if (x.size() == 0) return true;
  if (saved.size() == 0) return false;
  return packed(x) && all_aligned(gain.data(), saved.data()) &&
         with_lanes(x.extent(3), [&](auto of) {
           constexpr int lanes = decltype(of)::value;
           const Vectors<T> all = vectors_of(x);
           head_norm_rows<lanes><<<blocks_for(std::size_t(all.count) * lanes, block_threads),
                                   block_threads, 0, stream_of(context)>>>(
               all, gain.data(), static_cast<float>(eps), saved.data(), rstd.data());
           check_launch("head_norm_forward");
         });
}

template <class T>
bool native_head_norm_backward(const Context& context, Heads<T> dx, Matrix<const T> saved,
                               Vector<const T> gain, Vector<const float> rstd, Vector<float> dgain,
                               Vector<float>) {
  if (dx.size() == 0) return true;
  return packed(dx) && all_aligned(gain.data(), saved.data()) &&
         with_lanes(dx.extent(3), [&](auto of) {
           constexpr int lanes = decltype(of)::value, groups = block_threads / lanes;
           const Vectors<T> all = vectors_of(dx);
           const int blocks = std::min(divide_up(all.count, groups),
                                       blocks_per_multiprocessor * multiprocessors());
           const int size = lanes * pack_size;
           float* sums = context.library->scratch(std::size_t(blocks) * size);
           head_norm_rows_backward<lanes><<<blocks, block_threads, 0, stream_of(context)>>>(
               all, saved.data(), gain.data(), rstd.data(), sums);
           add_columns(context, sums, blocks, size, dgain.data());
           check_launch("head_norm_backward");
         });
}

#define INSTANTIATE(T)                                                        \
  template decltype(native_head_norm_forward<T>) native_head_norm_forward<T>; \
  template decltype(native_head_norm_backward<T>) native_head_norm_backward<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
