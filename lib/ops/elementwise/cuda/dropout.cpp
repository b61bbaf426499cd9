#include "ops/elementwise/dropout.hpp"
#include "ops/elementwise/cuda/dropout.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

// One thread per pack; width in packs. Loads are in flight while the numbers are drawn.
template <class T>
__global__ void dropout_packs(const PackDropout dropout, const T* x, const T* added, T* y,
                              unsigned width, unsigned packs) {
  const unsigned pack = blockIdx.x * block_threads + threadIdx.x;
  if (pack >= packs) return;
  const std::size_t at = std::size_t(pack) * pack_size;
  const Pack value = Pack::load(x + at);
  Pack sum{};
  if (added) sum = Pack::load(added + at);
  sum_of(sum, dropout.of(value, pack / width, pack % width * pack_size)).store(y + at);
}

}  // namespace

template <class T>
bool Dropout<T>::native(const Context& context, const Dropout& call) {
  if (call.y.size() == 0) return true;
  const T* more = call.added.size() > 0 ? call.added.data() : nullptr;
  const std::size_t packs = call.y.size() / pack_size;
  if (!all_aligned(call.x.data(), more, call.y.data()) || call.y.extent(1) % pack_size != 0 ||
      packs >= 1u << 31)
    return false;
  dropout_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      PackDropout(call.key), call.x.data(), more, call.y.data(),
      static_cast<unsigned>(call.y.extent(1) / pack_size), static_cast<unsigned>(packs));
  check_launch("dropout");
  return true;
}

TERN_INSTANTIATE_NATIVE(Dropout)

}  // namespace tern::ops
