/// Norm and rotation of q and k, and storage of k and v in their pages, in one kernel: a thread
/// holds eight pairs of a head, neighbouring lanes of a warp the rest.
#include "ops/cuda/detail/kernels.hpp"
#include "ops/paged_cache.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

template <class T>
struct Store {
  T* qkv;  // (N, (H + 2K) E)
  T *keys, *values;
  const T *q_gain, *k_gain;  // null: no norm
  float eps;
  const float* table;  // (positions, E); null: no rotation
  const std::int32_t *positions, *places;
  int heads, kv_heads, size, page_tokens;

  __device__ T* row(int n) const { return qkv + std::size_t(n) * (heads + 2 * kv_heads) * size; }
  __device__ T* stored(T* cache, int place, int kv) const {
    const int page = place / page_tokens, token = place % page_tokens;
    return cache + ((std::size_t(page) * kv_heads + kv) * page_tokens + token) * size;
  }
};

__device__ void rotate(const Pack& cosine, const Pack& sine, Pack& low, Pack& high) {
  for (int j = 0; j < pack_size; ++j) {
    const float x = low.value[j], y = high.value[j];
    low.value[j] = x * cosine.value[j] - y * sine.value[j];
    high.value[j] = y * cosine.value[j] + x * sine.value[j];
  }
}

__device__ void scale(Pack& x, float factor, const Pack& by) {
  for (int j = 0; j < pack_size; ++j) x.value[j] *= factor * by.value[j];
}

/// 1 / RMS of a head held by `lanes` neighbouring lanes, a power of 2.
__device__ float reciprocal_norm(const Pack& low, const Pack& high, int lanes, float eps) {
  float squares = 0;
  for (int j = 0; j < pack_size; ++j)
    squares += low.value[j] * low.value[j] + high.value[j] * high.value[j];
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  return rsqrtf(squares / (2 * lanes * pack_size) + eps);
}

// blockIdx.y: the row. Units of a row: half a head's packs, for each head of q, k and v.
template <class T>
__global__ void paged_store_rows(Store<T> a) {
  const int half = a.size / 2, units = half / pack_size;
  const int at = blockIdx.x * block_threads + threadIdx.x;
  const int head = at / units, i = at % units * pack_size, n = blockIdx.y;
  release_next();
  await_previous();
  const bool inside = head < a.heads + 2 * a.kv_heads;  // all lanes of a warp take part in the norm
  const bool query = head < a.heads, value = head >= a.heads + a.kv_heads;
  T* from = a.row(n) + head * a.size + i;
  // All that is read is in flight at once.
  Pack low{}, high{}, low_gain{}, high_gain{}, cosine{}, sine{};
  int place = 0;
  if (inside) {
    low = Pack::load(from), high = Pack::load(from + half);
    place = a.places[n];
    if (a.table && !value) {
      const float* at = a.table + std::size_t(a.positions[n]) * a.size + i;
      cosine = Pack::load(at), sine = Pack::load(at + half);
    }
    if (a.q_gain && !value) {
      const T* gain = (query ? a.q_gain : a.k_gain) + i;
      low_gain = Pack::load(gain), high_gain = Pack::load(gain + half);
    }
  }
  if (a.q_gain) {
    const float factor = reciprocal_norm(low, high, units, a.eps);
    if (!value) scale(low, factor, low_gain), scale(high, factor, high_gain);
  }
  if (!inside) return;
  if (a.table && !value) rotate(cosine, sine, low, high);
  if (!value) low.store(from), high.store(from + half);
  if (query) return;
  const int kv = head - a.heads - (value ? a.kv_heads : 0);
  T* to = a.stored(value ? a.values : a.keys, place, kv) + i;
  low.store(to);
  high.store(to + half);
}

}  // namespace

template <class T>
bool native_paged_store(const Context& context, const PagedRows& rows, Matrix<T> qkv,
                        std::size_t heads, const HeadStage<T>& stage, const PagedCache<T>& cache) {
  const std::size_t N = qkv.extent(0), K = cache.keys.extent(1), P = cache.page_tokens;
  const std::size_t E = cache.keys.extent(2) / P, lanes = E / (2 * pack_size);
  if (N == 0) return true;
  const bool normed = stage.q_gain.size() > 0, rotated = stage.table.extent(0) > 0;
  if (E % (2 * pack_size) != 0 || N > 65535 || (rotated && stage.table.extent(1) != E) ||
      (normed && (lanes > warp_size || (lanes & (lanes - 1)) != 0)) ||
      !all_aligned(qkv.data(), cache.keys.data(), cache.values.data()) ||
      !all_aligned(stage.table.data(), stage.q_gain.data(), stage.k_gain.data()))
    return false;
  const Store<T> a{qkv.data(),
                   cache.keys.data(),
                   cache.values.data(),
                   normed ? stage.q_gain.data() : nullptr,
                   normed ? stage.k_gain.data() : nullptr,
                   static_cast<float>(stage.eps),
                   rotated ? stage.table.data() : nullptr,
                   rows.positions.data(),
                   rows.places.data(),
                   static_cast<int>(heads),
                   static_cast<int>(K),
                   static_cast<int>(E),
                   static_cast<int>(P)};
  const dim3 grid(blocks_for((heads + 2 * K) * lanes, block_threads), static_cast<unsigned>(N));
  launch_early("paged_store", &paged_store_rows<T>, grid, block_threads, 0, stream_of(context), a);
  return true;
}

template decltype(native_paged_store<bf16>) native_paged_store<bf16>;
template decltype(native_paged_store<fp16>) native_paged_store<fp16>;

}  // namespace tern::ops
