#include "ops/loss/embedding.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/library.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 128;

template <class T>
struct Gather {
  const std::int32_t* tokens;
  const T *table, *positions;  // positions may be null
  T* x;
  std::size_t rows, width;
  int tokens_per_sequence, first;
};

template <class T>
__global__ void embedding_rows(Gather<T> a) {
  const std::size_t packs = a.width / pack_size;
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  if (at >= a.rows * packs) return;
  const std::size_t row = at / packs, column = at % packs * pack_size;
  Pack value = Pack::load(a.table + std::size_t(a.tokens[row]) * a.width + column);
  if (a.positions) {
    const std::size_t position = a.first + row % a.tokens_per_sequence;
    const Pack more = Pack::load(a.positions + position * a.width + column);
    for (int i = 0; i < pack_size; ++i) value.value[i] += more.value[i];
  }
  value.store(a.x + row * a.width + column);
}

// Rows sorted by token are divided into segments of equal length. A block sums the runs of equal
// tokens of its segment. The segment where a run begins adds to the table; later segments store
// their part of it in their row of `carried`, and the second kernel adds those in order. So no run
// is too long for one block, no two blocks add to a row at once, and the order depends only on the
// tokens.
constexpr int segment_rows = 32;

template <class T>
struct Scatter {
  const std::int32_t *tokens, *order;
  const T* dx;
  float *table, *carried;  // carried (segments, width)
  int rows, width;

  __device__ int token(int i) const { return tokens[order[i]]; }
  /// Whether row i continues a run: its token is that of the row before.
  __device__ bool continues(int i) const { return i > 0 && token(i) == token(i - 1); }
};

__device__ void add_pack(float* to, const Pack& sum) {
  Pack total = Pack::load(to);
  for (int i = 0; i < pack_size; ++i) total.value[i] += sum.value[i];
  total.store(to);
}

template <class T>
__global__ void embedding_segments(Scatter<T> a) {
  const int column = (blockIdx.y * block_threads + threadIdx.x) * pack_size;
  if (column >= a.width) return;
  const int begin = blockIdx.x * segment_rows, end = min(begin + segment_rows, a.rows);
  bool carried = a.continues(begin);
  Pack sum{};
  for (int i = begin; i < end; ++i) {
    const Pack row = Pack::load(a.dx + std::size_t(a.order[i]) * a.width + column);
    for (int j = 0; j < pack_size; ++j) sum.value[j] += row.value[j];
    if (i + 1 < end && a.continues(i + 1)) continue;
    if (carried)
      sum.store(a.carried + std::size_t(blockIdx.x) * a.width + column);
    else
      add_pack(a.table + std::size_t(a.token(i)) * a.width + column, sum);
    carried = false;
    sum = Pack{};
  }
}

/// For the first segment into which a run is carried: adds its parts in that and later segments.
template <class T>
__global__ void embedding_carried(Scatter<T> a) {
  const int column = (blockIdx.y * block_threads + threadIdx.x) * pack_size;
  const int begin = blockIdx.x * segment_rows;
  if (column >= a.width || !a.continues(begin)) return;
  const int token = a.token(begin);
  const int before = begin - segment_rows;  // carried there as well: an earlier block adds it
  if (before > 0 && a.token(before) == token && a.continues(before)) return;
  Pack sum{};
  for (int i = begin; i < a.rows && a.token(i) == token; i += segment_rows) {
    const Pack part = Pack::load(a.carried + std::size_t(i / segment_rows) * a.width + column);
    for (int j = 0; j < pack_size; ++j) sum.value[j] += part.value[j];
  }
  add_pack(a.table + std::size_t(token) * a.width + column, sum);
}

template <class T>
__global__ void embedding_positions(const T* dx, int sequences, int tokens, int width,
                                    float* positions) {
  const int column = (blockIdx.y * block_threads + threadIdx.x) * pack_size;
  if (column >= width) return;
  Pack sum{};
  for (int b = 0; b < sequences; ++b) {
    const std::size_t row = std::size_t(b) * tokens + blockIdx.x;
    const Pack value = Pack::load(dx + row * width + column);
    for (int j = 0; j < pack_size; ++j) sum.value[j] += value.value[j];
  }
  add_pack(positions + std::size_t(blockIdx.x) * width + column, sum);
}

}  // namespace

template <class T>
bool native_embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                              Matrix<const T> table, Matrix<const T> positions,
                              std::size_t tokens_per_sequence, int first, Matrix<T> x) {
  if (x.size() == 0) return true;
  const T* positions_data = positions.size() ? positions.data() : nullptr;
  if (x.extent(1) % pack_size != 0 || !all_aligned(table.data(), positions_data, x.data()))
    return false;
  const Gather<T> a{tokens.data(),
                    table.data(),
                    positions_data,
                    x.data(),
                    x.extent(0),
                    x.extent(1),
                    static_cast<int>(tokens_per_sequence),
                    first};
  embedding_rows<<<blocks_for(x.size() / pack_size, block_threads), block_threads, 0,
                   stream_of(context)>>>(a);
  check_launch("embedding_forward");
  return true;
}

template <class T>
bool native_embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                               Vector<const std::int32_t> order, Matrix<const T> dx,
                               std::size_t tokens_per_sequence, Matrix<float> dtable,
                               Matrix<float> dpositions) {
  if (dx.size() == 0) return true;
  const int rows = static_cast<int>(dx.extent(0)), width = static_cast<int>(dx.extent(1));
  const auto segments = static_cast<unsigned>(divide_up(rows, segment_rows));
  float* dpositions_data = dpositions.size() ? dpositions.data() : nullptr;
  if (width % pack_size != 0 || !all_aligned(dx.data(), dtable.data(), dpositions_data) ||
      std::size_t(segments) * width * sizeof(float) > NativeLibrary::workspace_bytes)
    return false;
  const auto stream = stream_of(context);
  const unsigned wide = blocks_for(static_cast<std::size_t>(width) / pack_size, block_threads);
  const Scatter<T> a{tokens.data(),
                     order.data(),
                     dx.data(),
                     dtable.data(),
                     context.library->scratch(std::size_t(segments) * width),
                     rows,
                     width};
  embedding_segments<<<dim3(segments, wide), block_threads, 0, stream>>>(a);
  embedding_carried<<<dim3(segments, wide), block_threads, 0, stream>>>(a);
  if (dpositions_data) {
    const auto length = static_cast<unsigned>(tokens_per_sequence);
    embedding_positions<<<dim3(length, wide), block_threads, 0, stream>>>(
        dx.data(), rows / static_cast<int>(length), static_cast<int>(length), width,
        dpositions_data);
  }
  check_launch("embedding_backward");
  return true;
}

#define INSTANTIATE(T)                                                        \
  template decltype(native_embedding_forward<T>) native_embedding_forward<T>; \
  template decltype(native_embedding_backward<T>) native_embedding_backward<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
