/// Rotation of q and k and the way of k and v into their pages, in one kernel: a thread turns eight
/// pairs of a head, or carries eight numbers of a value.
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/serving.hpp"
#include "ops/portable/serving.hpp"

namespace tern::ops::cuda {
namespace {

using namespace detail;

constexpr int block_threads = 256;

struct Store {
  bf16* qkv;  // (N, (H + 2K) E)
  bf16 *keys, *values;
  const float* table;  // (positions, E); null: no rotation
  const std::int32_t *positions, *places;
  int heads, kv_heads, size, page_tokens;

  __device__ bf16* row(int n) const { return qkv + std::size_t(n) * (heads + 2 * kv_heads) * size; }
  __device__ bf16* stored(bf16* cache, int place, int kv) const {
    const int page = place / page_tokens, token = place % page_tokens;
    return cache + ((std::size_t(page) * kv_heads + kv) * page_tokens + token) * size;
  }
};

__device__ void rotate(const float* table, int half, Pack& low, Pack& high) {
  const Pack cosine = Pack::load(table), sine = Pack::load(table + half);
  for (int j = 0; j < pack_size; ++j) {
    const float x = low.value[j], y = high.value[j];
    low.value[j] = x * cosine.value[j] - y * sine.value[j];
    high.value[j] = y * cosine.value[j] + x * sine.value[j];
  }
}

// blockIdx.y: the row. Units of the row: half a head's packs for each head of q and k, then the
// same number for each of v.
__global__ void store(Store a) {
  const int half = a.size / 2, units = half / pack_size;
  const int at = blockIdx.x * block_threads + threadIdx.x;
  const int head = at / units, i = at % units * pack_size, n = blockIdx.y;
  if (head >= a.heads + 2 * a.kv_heads) return;
  const bool query = head < a.heads, value = head >= a.heads + a.kv_heads;
  if (query && !a.table) return;
  bf16* from = a.row(n) + head * a.size + i;
  Pack low = Pack::load(from), high = Pack::load(from + half);
  if (a.table && !value) {
    rotate(a.table + std::size_t(a.positions[n]) * a.size + i, half, low, high);
    low.store(from);
    high.store(from + half);
  }
  if (query) return;
  const int kv = head - a.heads - (value ? a.kv_heads : 0);
  bf16* to = a.stored(value ? a.values : a.keys, a.places[n], kv) + i;
  low.store(to);
  high.store(to + half);
}

}  // namespace

void paged_store(const Context& context, const PagedRows& rows, Matrix<bf16> qkv, std::size_t heads,
                 Matrix<const float> table, const PagedCache<bf16>& cache) {
  const std::size_t N = qkv.extent(0), K = cache.keys.extent(1), P = cache.page_tokens;
  const std::size_t E = cache.keys.extent(2) / P;
  if (N == 0) return;
  const bool rotated = table.extent(0) > 0;
  if (E % (2 * pack_size) != 0 || N > 65535 || (rotated && table.extent(1) != E) ||
      !all_aligned(qkv.data(), cache.keys.data(), cache.values.data(), table.data()))
    return portable::paged_store<bf16>(context, rows, qkv, heads, table, cache);
  const Store a{qkv.data(),
                cache.keys.data(),
                cache.values.data(),
                rotated ? table.data() : nullptr,
                rows.positions.data(),
                rows.places.data(),
                static_cast<int>(heads),
                static_cast<int>(K),
                static_cast<int>(E),
                static_cast<int>(P)};
  const dim3 grid(blocks_for((heads + 2 * K) * E / (2 * pack_size), block_threads),
                  static_cast<unsigned>(N));
  store<<<grid, block_threads, 0, stream_of(context)>>>(a);
  check_launch("paged_store");
}

}  // namespace tern::ops::cuda
