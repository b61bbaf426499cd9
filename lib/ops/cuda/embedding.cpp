#include "ops/embedding.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/library.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 128;

struct Gather {
  const std::int32_t* tokens;
  const bf16 *table, *positions;  // positions may be null
  bf16* x;
  std::size_t rows, width;
  int tokens_per_sequence, first;
};

__global__ void embedding_rows(Gather a) {
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

struct Scatter {
  const std::int32_t *tokens, *order;
  const bf16* dx;
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

__global__ void embedding_segments(Scatter a) {
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
__global__ void embedding_carried(Scatter a) {
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

__global__ void embedding_positions(const bf16* dx, int sequences, int tokens, int width,
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

bool native_embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                              Matrix<const bf16> table, Matrix<const bf16> positions,
                              std::size_t tokens_per_sequence, int first, Matrix<bf16> x) {
  if (x.size() == 0) return true;
  const bf16* positions_data = positions.size() ? positions.data() : nullptr;
  if (x.extent(1) % pack_size != 0 || !all_aligned(table.data(), positions_data, x.data()))
    return false;
  const Gather a{tokens.data(),
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

bool native_embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                               Vector<const std::int32_t> order, Matrix<const bf16> dx,
                               std::size_t tokens_per_sequence, Matrix<float> dtable,
                               Matrix<float> dpositions) {
  if (dx.size() == 0) return true;
  const int rows = static_cast<int>(dx.extent(0)), width = static_cast<int>(dx.extent(1));
  const auto segments = static_cast<unsigned>(divide_up(rows, segment_rows));
  float* dpositions_data = dpositions.size() ? dpositions.data() : nullptr;
  if (width % pack_size != 0 || !all_aligned(dx.data(), dtable.data(), dpositions_data) ||
      std::size_t(segments) * width * sizeof(float) > Library::workspace_bytes)
    return false;
  const auto stream = stream_of(context);
  const unsigned wide = blocks_for(static_cast<std::size_t>(width) / pack_size, block_threads);
  const Scatter a{tokens.data(),
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

}  // namespace tern::ops
