#include "ops/elementwise/fp8_matrix.hpp"
#include "ops/elementwise/cuda/rounding.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

/// magnitude = max(magnitude, largest |x|) as float's bits, which order as the numbers do, NaN
/// above all. A maximum does not depend on the order of atomics.
__global__ void largest_of_packs(const uint4* x, std::size_t packs, std::uint32_t* magnitude) {
  __shared__ std::uint32_t of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  std::uint32_t pair = 0;  // two bf16 numbers
  const std::size_t stride = std::size_t(gridDim.x) * block_threads;
#pragma unroll 4
  for (std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x; at < packs;
       at += stride) {
    const uint4 words = x[at];
    for (const std::uint32_t word : {words.x, words.y, words.z, words.w})
      pair = __vmaxu2(pair, word & 0x7fff7fffu);
  }
  const std::uint32_t most = __reduce_max_sync(0xffffffffu, max(pair >> 16, pair & 0xffffu));
  if (threadIdx.x % warp_size == 0) atomicMax(&of_block, most << 16);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(magnitude, of_block);
}

void find_magnitude(const Context& context, const bf16* x, std::size_t packs,
                    std::uint32_t* magnitude) {
  if (packs == 0) return;
  const unsigned blocks =
      std::min<unsigned>(8 * multiprocessors(), blocks_for(packs, block_threads));
  largest_of_packs<<<blocks, block_threads, 0, stream_of(context)>>>(
      reinterpret_cast<const uint4*>(x), packs, magnitude);
  check_launch("largest_magnitude");
}

}  // namespace

template <class T>
bool LargestMagnitude<T>::native(const Context& context, const LargestMagnitude& call) {
  if (!all_aligned(call.x.data()) || call.x.size() % pack_size != 0) return false;
  find_magnitude(context, call.x.data(), call.x.size() / pack_size,
                 start_magnitude(call.magnitude, stream_of(context)));
  return true;
}

template <class T>
bool Fp8Round<T>::native(const Context& context, const Fp8Round& call) {
  if (call.values.size() == 0) return true;
  if (!all_aligned(call.values.data()) || !all_aligned_of(call.to)) return false;
  const cudaStream_t stream = stream_of(context);
  if (std::uint32_t* raised = raised_magnitude(call.to, call.scaling, stream))
    find_magnitude(context, call.values.data(), call.values.size() / pack_size, raised);
  launch_rounding("fp8_round", stream, Stored{{}, call.values.data(), call.values.extent(1)},
                  call.values.extent(0), call.values.extent(1), call.to, call.scaling);
  return true;
}

template bool LargestMagnitude<bf16>::native(const Context&, const LargestMagnitude<bf16>&);
template bool Fp8Round<bf16>::native(const Context&, const Fp8Round<bf16>&);

}  // namespace tern::ops
