#include "ops/elementwise/dropout.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/elementwise/dropout_mask.hpp"

namespace tern::ops {
using namespace portable;

template <class T>
void Dropout<T>::check() const {
  TERN_REQUIRE(x.size() == y.size() && (added.size() == 0 || added.size() == y.size()),
               "{} numbers and {} to {}", x.size(), added.size(), y.size());
}

template <class T>
void Dropout<T>::portable(const Context& context, const Dropout& call) {
  using A = Accumulate<T>;
  const A scale = static_cast<A>(1 / (1 - call.key.probability));
  constexpr std::size_t together = DropoutMask::width;
  const std::uint32_t threshold = DropoutMask::threshold(call.key);
  const std::size_t width = call.y.extent(1), groups = (width + together - 1) / together;
  const T *in = call.x.data(), *more = call.added.size() > 0 ? call.added.data() : nullptr;
  T* out = call.y.data();
  const DropoutKey k = call.key;
  detail::for_each(
      context, "tern::dropout", call.y.extent(0) * groups, KOKKOS_LAMBDA(const std::size_t i) {
        const std::size_t row = i / groups, group = i % groups;
        const DropoutMask mask(k, row, group);
        for (std::size_t j = 0; j < together && together * group + j < width; ++j) {
          const std::size_t at = row * width + together * group + j;
          const A kept = mask.keeps(static_cast<int>(j), threshold) ? A(in[at]) * scale : A(0);
          out[at] = T(more ? A(more[at]) + kept : kept);
        }
      });
}

TERN_INSTANTIATE_PORTABLE(Dropout)

}  // namespace tern::ops
