/// Norm and rotation of q and k, and storage of k and v in their pages, in one kernel: a thread
/// holds eight pairs of a head, neighboring lanes of a warp the rest.
#include "ops/decode/paged_cache.hpp"
#include "ops/elementwise/cuda/rounding.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

template <class T>
struct Store {
  T* qkv;  // (N, (H + 2K) E)
  PageMemory keys, values;
  const T *q_gain, *k_gain;  // null: no norm
  float eps;
  const float* table;  // (positions, E); null: no rotation
  const std::int32_t *positions, *places;
  int heads, kv_heads, size, page_tokens;

  __device__ T* row(int n) const { return qkv + std::size_t(n) * (heads + 2 * kv_heads) * size; }
  /// Place of a token of a head within (pages, K, P).
  __device__ std::size_t place_of(int place, int kv) const {
    const int page = place / page_tokens, token = place % page_tokens;
    return (std::size_t(page) * kv_heads + kv) * page_tokens + token;
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

/// 1 / RMS of a head held by `lanes` neighboring lanes, a power of 2.
__device__ float reciprocal_norm(const Pack& low, const Pack& high, int lanes, float eps) {
  float squares = 0;
  for (int j = 0; j < pack_size; ++j)
    squares += low.value[j] * low.value[j] + high.value[j] * high.value[j];
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  return rsqrtf(squares / (2 * lanes * pack_size) + eps);
}

/// Scale of a head held by `lanes` neighboring lanes.
template <class T>
__device__ float scale_of(const Pack& low, const Pack& high, int lanes) {
  float magnitude = larger(larger(0, low), high);
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    magnitude = larger(magnitude, __shfl_xor_sync(0xffffffffu, magnitude, offset));
  return e4m3_scale_in<T>(magnitude);
}

/// Half of a group of 16 numbers, of which the lane with the other half is next to this one: in the
/// order of code_place() a lane's bytes are every second, so each stores half of both lanes'.
__device__ void store_codes(std::uint8_t* to, const Pack& pack, float scale, bool second) {
  const std::uint32_t low = round_four<E4M3>(pack.value, scale);
  const std::uint32_t high = round_four<E4M3>(pack.value + 4, scale);
  const std::uint32_t other = __shfl_xor_sync(0xffffffffu, second ? low : high, 1);
  const std::uint32_t first_half = second ? other : low, second_half = second ? high : other;
  if (to)
    *reinterpret_cast<uint2*>(to) = {__byte_perm(first_half, second_half, 0x5140),
                                     __byte_perm(first_half, second_half, 0x7362)};
}

// blockIdx.y: the row. Units of a row: half a head's packs, for each head of q, k and v.
template <class T, bool coded>
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
  if (a.table && !value) rotate(cosine, sine, low, high);
  const auto rounded_low = RawPack<T>::round(low), rounded_high = RawPack<T>::round(high);
  float by = 1;
  if constexpr (coded) {
    low = rounded_low.pack(), high = rounded_high.pack();
    by = scale_of<T>(low, high, units);
  }
  if (inside && !value) rounded_low.store(from), rounded_high.store(from + half);
  const bool cached = inside && !query;
  const std::size_t at_place =
      cached ? a.place_of(place, head - a.heads - (value ? a.kv_heads : 0)) : 0;
  void* data = value ? a.values.data : a.keys.data;
  if constexpr (coded) {
    std::uint8_t* to = cached ? static_cast<std::uint8_t*>(data) + at_place * a.size + i : nullptr;
    const bool second = i / pack_size % 2 == 1;
    store_codes(to, low, by, second);
    store_codes(cached ? to + half : nullptr, high, by, second);
    if (cached && i == 0) (value ? a.values.undo : a.keys.undo)[at_place] = undo_scale(by);
  } else if (cached) {
    T* to = static_cast<T*>(data) + at_place * a.size + i;
    rounded_low.store(to);
    rounded_high.store(to + half);
  }
}

}  // namespace

template <class T>
bool PagedStore<T>::native(const Context& context, const PagedStore& call) {
  const std::size_t N = call.qkv.extent(0), K = call.cache.heads(), P = call.cache.page_tokens;
  const std::size_t E = call.cache.head_size(), lanes = E / (2 * pack_size);
  if (N == 0) return true;
  const PageMemory keys = call.cache.key_memory(), values = call.cache.value_memory();
  const bool normed = call.stage.q_gain.size() > 0, rotated = call.stage.table.extent(0) > 0;
  if (E % ((call.cache.coded() ? 4 : 2) * pack_size) != 0 || N > 65535 ||
      (rotated && call.stage.table.extent(1) != E) ||
      ((normed || call.cache.coded()) && (lanes > warp_size || (lanes & (lanes - 1)) != 0)) ||
      !all_aligned(call.qkv.data(), keys.data, values.data) ||
      !all_aligned(call.stage.table.data(), call.stage.q_gain.data(), call.stage.k_gain.data()))
    return false;
  const Store<T> a{call.qkv.data(),
                   keys,
                   values,
                   normed ? call.stage.q_gain.data() : nullptr,
                   normed ? call.stage.k_gain.data() : nullptr,
                   static_cast<float>(call.stage.eps),
                   rotated ? call.stage.table.data() : nullptr,
                   call.rows.positions.data(),
                   call.rows.places.data(),
                   static_cast<int>(call.heads),
                   static_cast<int>(K),
                   static_cast<int>(E),
                   static_cast<int>(P)};
  const dim3 grid(blocks_for((call.heads + 2 * K) * lanes, block_threads),
                  static_cast<unsigned>(N));
  launch_early("paged_store",
               call.cache.coded() ? &paged_store_rows<T, true> : &paged_store_rows<T, false>, grid,
               block_threads, 0, stream_of(context), a);
  return true;
}

TERN_INSTANTIATE_NATIVE(PagedStore)

}  // namespace tern::ops
