// Initial values of the parameters, drawn on the device.
#include "base/error.hpp"
#include "base/random.hpp"
#include "model/parameters.hpp"

namespace tern::model {
namespace {

/// Draws a piece of a parameter: `to` begins at element `begin` of this rank's part, which has
/// `columns` of the `all` columns and starts at element `first` of the whole. One Philox call per
/// four elements of the whole: a pure function of (seed, parameter, element).
template <class V>
struct DrawNormal {
  Vector<V> to;
  std::size_t begin, columns, all, first;
  double mean, std;
  std::uint64_t seed, parameter;

  KOKKOS_FUNCTION void operator()(const std::size_t i) const {
    const std::size_t at = begin + i, element = first + at / columns * all + at % columns;
    const std::size_t group = element / 4;
    const Random4 words =
        philox(seed, Stream::initialization, parameter, static_cast<std::uint32_t>(group >> 32),
               static_cast<std::uint32_t>(group));
    const bool second = element % 4 >= 2;
    const Normal2 pair = normal2(words.word[second ? 2 : 0], words.word[second ? 3 : 1]);
    const float normal = element % 2 == 0 ? pair.first : pair.second;
    to(i) = static_cast<V>(static_cast<Accumulate<V>>(mean + std * normal));
  }
};

template <class V>
void draw(const ops::Context& context, const Parameter& p, std::uint64_t seed, const Vector<V>& to,
          std::size_t begin) {
  if (p.init_std == 0)
    return Kokkos::deep_copy(context.space, to,
                             static_cast<V>(static_cast<Accumulate<V>>(p.init_mean)));
  TERN_REQUIRE(p.shape.size() <= 2, "'{}' has {} dimensions", p.name, p.shape.size());
  const bool rows = p.shape.size() == 2;
  const std::size_t all = rows ? p.whole[1] : p.whole[0];
  const std::size_t first = rows ? p.first[0] * all + p.first[1] : p.first[0];
  Kokkos::parallel_for(
      "tern::draw_normal", Kokkos::RangePolicy<Device>(context.space, 0, to.extent(0)),
      DrawNormal<V>{to, begin, p.shape.back(), all, first, p.init_mean, p.init_std, seed, p.place});
}

}  // namespace

template <class T>
void Parameters<T>::initialize(const ops::Context& context, const ParameterTree& tree,
                               std::uint64_t seed) {
  const auto draw_all = [&](const auto& array) {
    using V = typename std::decay_t<decltype(array)>::value_type;
    Kokkos::deep_copy(context.space, array, V(0.0f));
    for (const Parameter& p : tree.parameters())
      for (const Slice& held : slices_of(p))
        draw<V>(context, p, seed, Vector<V>(array.data() + held.local, held.count), held.first);
  };
  if (has_master())
    draw_all(master);
  else
    draw_all(compute);
  refresh_compute(context);
}

template void Parameters<float>::initialize(const ops::Context&, const ParameterTree&,
                                            std::uint64_t);
template void Parameters<double>::initialize(const ops::Context&, const ParameterTree&,
                                             std::uint64_t);
template void Parameters<bf16>::initialize(const ops::Context&, const ParameterTree&,
                                           std::uint64_t);

}  // namespace tern::model
