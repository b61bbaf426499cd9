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
bool EmbeddingForward<T>::native(const Context& context, const EmbeddingForward& call) {
  if (call.x.size() == 0) return true;
  const T* positions_data = call.positions.size() ? call.positions.data() : nullptr;
  if (call.x.extent(1) % pack_size != 0 ||
      !all_aligned(call.table.data(), positions_data, call.x.data()))
    return false;
  const Gather<T> a{call.tokens.data(),
                    call.table.data(),
                    positions_data,
                    call.x.data(),
                    call.x.extent(0),
                    call.x.extent(1),
                    static_cast<int>(call.tokens_per_sequence),
                    call.first};
  embedding_rows<<<blocks_for(call.x.size() / pack_size, block_threads), block_threads, 0,
                   stream_of(context)>>>(a);
  check_launch("embedding_forward");
  return true;
}

template <class T>
bool EmbeddingBackward<T>::native(const Context& context, const EmbeddingBackward& call) {
  if (call.dx.size() == 0) return true;
  const int rows = static_cast<int>(call.dx.extent(0)), width = static_cast<int>(call.dx.extent(1));
  const auto segments = static_cast<unsigned>(divide_up(rows, segment_rows));
  float* dpositions_data = call.dpositions.size() ? call.dpositions.data() : nullptr;
  if (width % pack_size != 0 || !all_aligned(call.dx.data(), call.dtable.data(), dpositions_data) ||
      std::size_t(segments) * width * sizeof(float) > NativeLibrary::workspace_bytes)
    return false;
  const auto stream = stream_of(context);
  const unsigned wide = blocks_for(static_cast<std::size_t>(width) / pack_size, block_threads);
  const Scatter<T> a{call.tokens.data(),
                     call.order.data(),
                     call.dx.data(),
                     call.dtable.data(),
                     context.library->scratch(std::size_t(segments) * width),
                     rows,
                     width};
  embedding_segments<<<dim3(segments, wide), block_threads, 0, stream>>>(a);
  embedding_carried<<<dim3(segments, wide), block_threads, 0, stream>>>(a);
  if (dpositions_data) {
    const auto length = static_cast<unsigned>(call.tokens_per_sequence);
    embedding_positions<<<dim3(length, wide), block_threads, 0, stream>>>(
        call.dx.data(), rows / static_cast<int>(length), static_cast<int>(length), width,
        dpositions_data);
  }
  check_launch("embedding_backward");
  return true;
}

TERN_INSTANTIATE_NATIVE(EmbeddingForward)
TERN_INSTANTIATE_NATIVE(EmbeddingBackward)

}  // namespace tern::ops
