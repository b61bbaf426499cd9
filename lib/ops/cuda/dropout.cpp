#include "ops/activation.hpp"
#include "ops/cuda/detail/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;
constexpr int draws = pack_size / 4;  // per pack

// One thread per pack; width in packs. Loads are in flight while the numbers are drawn.
template <class T>
__global__ void dropout_packs(const DropoutKey key, const T* x, const T* added, T* y,
                              float threshold, float scale, unsigned width, unsigned packs) {
  const unsigned pack = blockIdx.x * block_threads + threadIdx.x;
  if (pack >= packs) return;
  const std::size_t at = std::size_t(pack) * pack_size;
  const Pack value = Pack::load(x + at);
  Pack sum{};
  if (added) sum = Pack::load(added + at);
  const unsigned row = pack / width, column = pack % width;
  for (int d = 0; d < draws; ++d) {
    const Random4 draw = dropout_draw(key, row, column * draws + d);
    for (int j = 0; j < 4; ++j)
      if (uniform(draw.word[j]) >= threshold)
        sum.value[4 * d + j] += value.value[4 * d + j] * scale;
  }
  sum.store(y + at);
}

}  // namespace

template <class T>
bool native_dropout(const Context& context, const DropoutKey& key, Matrix<const T> x,
                    Matrix<const T> added, Matrix<T> y) {
  if (y.size() == 0) return true;
  const T* more = added.size() > 0 ? added.data() : nullptr;
  const std::size_t packs = y.size() / pack_size;
  if (!all_aligned(x.data(), more, y.data()) || y.extent(1) % pack_size != 0 || packs >= 1u << 31)
    return false;
  dropout_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      key, x.data(), more, y.data(), static_cast<float>(key.probability),
      static_cast<float>(1 / (1 - key.probability)), static_cast<unsigned>(y.extent(1) / pack_size),
      static_cast<unsigned>(packs));
  check_launch("dropout");
  return true;
}

#define INSTANTIATE(T) template decltype(native_dropout<T>) native_dropout<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
