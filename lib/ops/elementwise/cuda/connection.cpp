/// Connections with learned scalars. Bound by memory: a thread has the loads of several packs in
/// flight before it computes, and the scalars' gradients stay in registers until the block's last
/// tile. A tile is some packs per thread, block_threads apart: neighbors read neighboring packs.
#include <algorithm>

#include "ops/core/cuda/kernels.hpp"
#include "ops/elementwise/connection.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;
constexpr int most_scalars = 3;

template <class X>
bool given(const X& view) {
  return view.extent(0) > 0;
}

/// Packs at, at + block_threads, ...: zeros beyond `packs`, and where data is null.
template <int n, class T>
__device__ void load_tile(RawPack<T> (&to)[n], const T* data, std::size_t at, std::size_t packs) {
#pragma unroll
  for (int p = 0; p < n; ++p, at += block_threads)
    to[p] = data && at < packs ? RawPack<T>::load(data + at * pack_size) : RawPack<T>{};
}

/// What is multiplied by a scalar. Null data: no term; null scale: 1.
template <class T>
struct Term {
  const T *data, *scale;
  __device__ float factor() const { return scale ? float(*scale) : 1.0f; }
};
template <class T>
Term<T> term(const Matrix<const T>& data, const Vector<const T>& scale) {
  if (!given(scale)) return {};
  return {data.data(), scale.data()};
}

// ---- sums over all threads: each block writes its own, a second kernel adds those in order

/// partial (scalars, blocks): this block's sums.
template <int scalars>
__device__ void write_sums(const float (&sum)[scalars], float* partial) {
  __shared__ float shared[block_threads / warp_size];
#pragma unroll
  for (int s = 0; s < scalars; ++s) {
    const float total = group_sum<block_threads>(sum[s], shared);
    if (threadIdx.x == 0) partial[s * gridDim.x + blockIdx.x] = total;
  }
}

struct Targets {
  float* scalar[most_scalars];  // null: not wanted
};
/// A block per scalar.
__global__ void __launch_bounds__(block_threads)
    add_sums(const float* partial, int blocks, const __grid_constant__ Targets to) {
  __shared__ float shared[block_threads / warp_size];
  float* scalar = to.scalar[blockIdx.x];
  if (!scalar) return;
  float sum = 0;
  for (int b = threadIdx.x; b < blocks; b += block_threads) sum += partial[blockIdx.x * blocks + b];
  sum = group_sum<block_threads>(sum, shared);
  if (threadIdx.x == 0) *scalar += sum;
}

/// Blocks that take turns at the tiles: as many as are resident at once and have room for their
/// sums.
template <auto kernel>
unsigned resident_blocks(std::size_t packs, int packs_per_thread) {
  static const int each = [] {
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block_threads, 0);
    return blocks;
  }();
  const auto resident = static_cast<std::size_t>(each) * multiprocessors();
  const std::size_t tiles = divide_up<std::size_t>(packs, packs_per_thread * block_threads);
  return static_cast<unsigned>(std::min({tiles, resident, connect_partials() / most_scalars}));
}

// ---- earlier streams

constexpr int connect_packs = 2;  // per thread and tile

template <class T>
__global__ void __launch_bounds__(block_threads)
    connect_terms(Term<T> x, Term<T> input, Term<T> skip, T* y, std::size_t packs) {
  const std::size_t first = std::size_t(blockIdx.x) * connect_packs * block_threads + threadIdx.x;
  RawPack<T> of_x[connect_packs], of_input[connect_packs], of_skip[connect_packs];
  load_tile(of_x, x.data, first, packs);
  load_tile(of_input, input.data, first, packs);
  load_tile(of_skip, skip.data, first, packs);
  const float a = x.factor(), b = input.factor(), c = skip.factor();
#pragma unroll
  for (int p = 0; p < connect_packs; ++p) {
    const std::size_t at = first + p * block_threads;
    if (at >= packs) break;
    const Pack one = of_x[p].pack(), two = of_input[p].pack(), three = of_skip[p].pack();
    Pack sum;
    for (int i = 0; i < pack_size; ++i)
      sum.value[i] = a * one.value[i] + b * two.value[i] + c * three.value[i];
    sum.store(y + at * pack_size);
  }
}

template <class T>
struct ConnectGradients {
  Term<T> x, input, skip;  // input's is given with x's
  T *dy, *dinput, *dskip;
  float* partial;  // (most_scalars, blocks)
  std::size_t packs;
};

/// sum += products of the packs' numbers.
__device__ void add_products(float& sum, const Pack& x, const Pack& y) {
  for (int i = 0; i < pack_size; ++i) sum += x.value[i] * y.value[i];
}
/// before + factor * pack.
__device__ Pack scaled(const Pack& pack, float factor, const Pack& before = {}) {
  Pack result;
  for (int i = 0; i < pack_size; ++i) result.value[i] = before.value[i] + factor * pack.value[i];
  return result;
}

template <class T>
__global__ void __launch_bounds__(block_threads) connect_gradients(ConnectGradients<T> g) {
  constexpr int n = connect_packs;
  const float a = g.x.factor(), b = g.input.factor(), c = g.skip.factor();
  float sum[most_scalars] = {};
  for (std::size_t first = std::size_t(blockIdx.x) * n * block_threads + threadIdx.x;
       first < g.packs; first += std::size_t(gridDim.x) * n * block_threads) {
    RawPack<T> dy[n], x[n], input[n], skip[n], dinput[n];
    load_tile<n, T>(dy, g.dy, first, g.packs);
    load_tile(x, g.x.data, first, g.packs);
    load_tile(input, g.input.data, first, g.packs);
    load_tile(skip, g.skip.data, first, g.packs);
    load_tile<n, T>(dinput, g.dinput, first, g.packs);
#pragma unroll
    for (int p = 0; p < n; ++p) {
      const std::size_t at = first + p * block_threads;
      if (at >= g.packs) break;
      const Pack gradient = dy[p].pack();
      if (g.x.data) {
        add_products(sum[0], gradient, x[p].pack());
        add_products(sum[1], gradient, input[p].pack());
        scaled(gradient, b, dinput[p].pack()).store(g.dinput + at * pack_size);
        scaled(gradient, a).store(g.dy + at * pack_size);
      }
      if (g.skip.data) {
        add_products(sum[2], gradient, skip[p].pack());
        scaled(gradient, c).store(g.dskip + at * pack_size);
      }
    }
  }
  write_sums(sum, g.partial);
}

// ---- rows of a table

constexpr int row_packs = 4;  // per thread and tile

/// Packs of rows of a table, and of the columns of a fused matrix that they belong to.
template <class T>
struct TableRows {
  const std::int32_t* tokens;
  const T *table, *scale;
  std::uint32_t width, packs;  // packs of a row and of all rows
  std::size_t pitch, first;    // of the fused matrix: columns, and the first of a row's

  struct Place {
    bool inside;
    std::uint32_t row, column;
  };
  using Places = Place[row_packs];
  /// Of a thread's packs in a tile, `at` being the first.
  __device__ void find(Places& places, std::uint32_t at) const {
#pragma unroll
    for (int p = 0; p < row_packs; ++p, at += block_threads) {
      const std::uint32_t row = at / width;
      places[p] = {at < packs, row, (at - row * width) * pack_size};
    }
  }
  __device__ std::size_t in_fused(const Place& at) const {
    return at.row * pitch + first + at.column;
  }
  /// The packs of the table and of `fused` at the places, zeros outside.
  __device__ void load(const Places& at, const T* fused, RawPack<T> (&row)[row_packs],
                       RawPack<T> (&of_fused)[row_packs]) const {
    const std::size_t columns = std::size_t(width) * pack_size;
    std::size_t token[row_packs];
#pragma unroll
    for (int p = 0; p < row_packs; ++p) token[p] = at[p].inside ? tokens[at[p].row] : 0;
#pragma unroll
    for (int p = 0; p < row_packs; ++p) {
      of_fused[p] = row[p] = {};
      if (!at[p].inside) continue;
      of_fused[p] = RawPack<T>::load(fused + in_fused(at[p]));
      row[p] = RawPack<T>::load(table + token[p] * columns + at[p].column);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads) add_table_rows(TableRows<T> rows, T* fused) {
  typename TableRows<T>::Places at;
  RawPack<T> row[row_packs], before[row_packs];
  rows.find(at, blockIdx.x * row_packs * block_threads + threadIdx.x);
  rows.load(at, fused, row, before);
  const float scale = float(*rows.scale);
#pragma unroll
  for (int p = 0; p < row_packs; ++p)
    if (at[p].inside)
      scaled(row[p].pack(), scale, before[p].pack()).store(fused + rows.in_fused(at[p]));
}

/// drows (rows, width), partial (blocks).
template <class T>
__global__ void __launch_bounds__(block_threads)
    table_rows_gradients(TableRows<T> rows, const T* dfused, T* drows, float* partial) {
  typename TableRows<T>::Places at;
  RawPack<T> row[row_packs], gradient[row_packs];
  const float scale = float(*rows.scale);
  float sum[1] = {};
  for (std::uint32_t first = blockIdx.x * row_packs * block_threads + threadIdx.x;
       first < rows.packs; first += gridDim.x * row_packs * block_threads) {
    rows.find(at, first);
    rows.load(at, dfused, row, gradient);
#pragma unroll
    for (int p = 0; p < row_packs; ++p) {
      if (!at[p].inside) break;
      const Pack of_row = gradient[p].pack();
      add_products(sum[0], of_row, row[p].pack());
      const std::size_t to = std::size_t(first + p * block_threads) * pack_size;
      scaled(of_row, scale).store(drows + to);
    }
  }
  write_sums(sum, partial);
}

/// False where packs do not fit.
template <class T>
bool pack_rows(TableRows<T>& rows, std::size_t n, std::size_t columns) {
  constexpr std::size_t most_packs = std::size_t(1) << 31;  // room for the last tile's end
  if (columns % pack_size != 0 || rows.pitch % pack_size != 0 || rows.first % pack_size != 0 ||
      n * columns / pack_size > most_packs || !aligned_16(rows.table))
    return false;
  rows.width = static_cast<std::uint32_t>(columns / pack_size);
  rows.packs = static_cast<std::uint32_t>(n * columns / pack_size);
  return true;
}

}  // namespace

template <class T>
bool ConnectForward<T>::native(const Context& context, const ConnectForward& call) {
  if (call.y.size() == 0) return true;
  const Term<T> x{call.x.data(), given(call.a) ? call.a.data() : nullptr};
  const Term<T> input = term<T>(call.input, call.b), skip = term<T>(call.skip, call.c);
  if (!all_aligned(x.data, input.data, skip.data, call.y.data()) || call.y.size() % pack_size != 0)
    return false;
  const std::size_t packs = call.y.size() / pack_size;
  connect_terms<<<blocks_for(packs, connect_packs * block_threads), block_threads, 0,
                  stream_of(context)>>>(x, input, skip, call.y.data(), packs);
  check_launch("connect_forward");
  return true;
}

template <class T>
bool ConnectBackward<T>::native(const Context& context, const ConnectBackward& call) {
  if (call.dy.size() == 0) return true;
  const bool first = given(call.b), other = given(call.c);
  const ConnectGradients<T> g{term<T>(call.x, call.a),
                              term<T>(call.input, call.b),
                              term<T>(call.skip, call.c),
                              call.dy.data(),
                              first ? call.dinput.data() : nullptr,
                              other ? call.dskip.data() : nullptr,
                              call.partial.data(),
                              call.dy.size() / pack_size};
  if (given(call.a) != first || call.dy.size() % pack_size != 0 ||
      !all_aligned(g.x.data, g.input.data, g.skip.data, g.dy, g.dinput, g.dskip))
    return false;
  const unsigned blocks = resident_blocks<&connect_gradients<T>>(g.packs, connect_packs);
  connect_gradients<<<blocks, block_threads, 0, stream_of(context)>>>(g);
  add_sums<<<most_scalars, block_threads, 0, stream_of(context)>>>(
      g.partial, static_cast<int>(blocks),
      {first ? call.da.data() : nullptr, first ? call.db.data() : nullptr,
       other ? call.dc.data() : nullptr});
  check_launch("connect_backward");
  return true;
}

template <class T>
bool AddScaledRows<T>::native(const Context& context, const AddScaledRows& call) {
  TableRows<T> rows{call.tokens.data(),   call.table.data(), call.scale.data(), 0, 0,
                    call.fused.extent(1), call.first};
  if (!pack_rows(rows, call.fused.extent(0), call.table.extent(1)) ||
      !aligned_16(call.fused.data()))
    return false;
  if (rows.packs == 0) return true;
  add_table_rows<<<blocks_for(rows.packs, row_packs * block_threads), block_threads, 0,
                   stream_of(context)>>>(rows, call.fused.data());
  check_launch("add_scaled_rows");
  return true;
}

template <class T>
bool ScaledRowsBackward<T>::native(const Context& context, const ScaledRowsBackward& call) {
  TableRows<T> rows{call.tokens.data(),    call.table.data(), call.scale.data(), 0, 0,
                    call.dfused.extent(1), call.first};
  if (!pack_rows(rows, call.drows.extent(0), call.drows.extent(1)) ||
      !all_aligned(call.dfused.data(), call.drows.data()))
    return false;
  if (rows.packs == 0) return true;
  const unsigned blocks = resident_blocks<&table_rows_gradients<T>>(rows.packs, row_packs);
  table_rows_gradients<<<blocks, block_threads, 0, stream_of(context)>>>(
      rows, call.dfused.data(), call.drows.data(), call.partial.data());
  add_sums<<<1, block_threads, 0, stream_of(context)>>>(
      call.partial.data(), static_cast<int>(blocks), {call.dscale.data(), nullptr, nullptr});
  check_launch("scaled_rows_backward");
  return true;
}

TERN_INSTANTIATE_NATIVE(ConnectForward)
TERN_INSTANTIATE_NATIVE(ConnectBackward)
TERN_INSTANTIATE_NATIVE(AddScaledRows)
TERN_INSTANTIATE_NATIVE(ScaledRowsBackward)

}  // namespace tern::ops
