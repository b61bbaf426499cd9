#include "ops/elementwise/dropout.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/elementwise/dropout_mask.hpp"

namespace tern::ops {
using namespace portable;

template <class T>
void dropout(const Context& context, const DropoutKey& key, Matrix<const T> x,
             Matrix<const T> added, Matrix<T> y) {
  TERN_REQUIRE(x.size() == y.size() && (added.size() == 0 || added.size() == y.size()),
               "{} numbers and {} to {}", x.size(), added.size(), y.size());
  if (native<&dropout<T>>(context, key, x, added, y)) return;
  using A = Accumulate<T>;
  const A scale = static_cast<A>(1 / (1 - key.probability));
  constexpr std::size_t together = DropoutMask::width;
  const std::uint32_t threshold = DropoutMask::threshold(key);
  const std::size_t width = y.extent(1), groups = (width + together - 1) / together;
  const T *in = x.data(), *more = added.size() > 0 ? added.data() : nullptr;
  T* out = y.data();
  const DropoutKey k = key;
  detail::for_each(
      context, "tern::dropout", y.extent(0) * groups, KOKKOS_LAMBDA(const std::size_t i) {
        const std::size_t row = i / groups, group = i % groups;
        const DropoutMask mask(k, row, group);
        for (std::size_t j = 0; j < together && together * group + j < width; ++j) {
          const std::size_t at = row * width + together * group + j;
          const A kept = mask.keeps(static_cast<int>(j), threshold) ? A(in[at]) * scale : A(0);
          out[at] = T(more ? A(more[at]) + kept : kept);
        }
      });
}

#define INSTANTIATE(T) template decltype(dropout<T>) dropout<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
