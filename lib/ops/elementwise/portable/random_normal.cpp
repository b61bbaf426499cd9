#include "base/random.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace tern::ops {
namespace {

/// One Philox call per four elements of the whole matrix.
template <class T>
struct NormalNumbers {
  Normal of;
  Vector<T> to;

  KOKKOS_FUNCTION void operator()(const std::size_t i) const {
    const std::size_t at = of.begin + i;
    const std::size_t element = of.first + at / of.columns * of.all_columns + at % of.columns;
    const std::size_t group = element / 4;
    const Random4 words =
        philox(of.seed, Stream::initialization, of.matrix, static_cast<std::uint32_t>(group >> 32),
               static_cast<std::uint32_t>(group));
    const bool second = element % 4 >= 2;
    const Normal2 pair = normal2(words.word[second ? 2 : 0], words.word[second ? 3 : 1]);
    const float normal = element % 2 == 0 ? pair.first : pair.second;
    to(i) = static_cast<T>(static_cast<Accumulate<T>>(of.mean + of.std * normal));
  }
};

}  // namespace

template <class T>
void DrawNormal<T>::portable(const Context& context, const DrawNormal& call) {
  Kokkos::parallel_for("tern::draw_normal",
                       Kokkos::RangePolicy<Device>(context.space, 0, call.to.extent(0)),
                       NormalNumbers<T>{call.of, call.to});
}

TERN_INSTANTIATE_PORTABLE(DrawNormal)

}  // namespace tern::ops
