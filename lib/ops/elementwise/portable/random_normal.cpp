#include "base/random.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace tern::ops {
namespace {

/// One Philox call per four elements of the whole matrix.
template <class T>
struct DrawNormal {
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
void draw_normal(const Context& context, const Normal& of, Vector<T> to) {
  Kokkos::parallel_for("tern::draw_normal",
                       Kokkos::RangePolicy<Device>(context.space, 0, to.extent(0)),
                       DrawNormal<T>{of, to});
}

template void draw_normal<float>(const Context&, const Normal&, Vector<float>);
template void draw_normal<double>(const Context&, const Normal&, Vector<double>);
template void draw_normal<bf16>(const Context&, const Normal&, Vector<bf16>);
template void draw_normal<fp16>(const Context&, const Normal&, Vector<fp16>);

}  // namespace tern::ops
