/// Rounding of rows to fp8: a row belongs to a block and stays in registers.
#include "ops/elementwise/fp8_rows.hpp"

#include "ops/elementwise/cuda/code_rows.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int threads = 1024, most_packs = 2;
constexpr std::size_t most_columns = threads * most_packs * pack_size;

template <int packs, class T>
__global__ void __launch_bounds__(threads) round_rows(T* x, int width, RowCodes to) {
  __shared__ float shared[threads / warp_size];
  release_next();
  await_previous();
  const int row = static_cast<int>(blockIdx.x);
  T* const values = x + std::size_t(row) * width;
  RawPack<T> pack[packs];
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + static_cast<int>(threadIdx.x)) * pack_size;
    pack[p] = {};
    if (column < width) pack[p] = RawPack<T>::load(values + column);
  }
  round_row<threads>(pack, row, to, shared);
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int column = (p * threads + static_cast<int>(threadIdx.x)) * pack_size;
    if (column < width) pack[p].store(values + column);
  }
}

}  // namespace

template <class T>
bool Fp8RoundRows<T>::native(const Context& context, const Fp8RoundRows& call) {
  const std::size_t N = call.x.extent(0), I = call.x.extent(1);
  if (call.x.size() == 0) return true;
  if (I % pack_size != 0 || I > most_columns || !all_aligned(call.x.data(), call.to.codes.data()))
    return false;
  const auto kernel =
      I <= most_columns / 2 ? &round_rows<most_packs / 2, T> : &round_rows<most_packs, T>;
  launch_early("fp8_round_rows", kernel, dim3(static_cast<unsigned>(N)), dim3(threads), 0,
               stream_of(context), call.x.data(), static_cast<int>(I), RowCodes(call.to));
  return true;
}

TERN_INSTANTIATE_NATIVE(Fp8RoundRows)

}  // namespace tern::ops
