#include "ops/elementwise/fp8_matrix.hpp"

#include "base/error.hpp"
#include "base/fp8.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using Bytes = Matrix<std::uint8_t>;

template <class Format>
KOKKOS_INLINE_FUNCTION float scale_from(const std::uint32_t* magnitude, float headroom) {
  return scale_for<Format>(headroom * float_of_bits(*magnitude));
}

template <class Format, class T>
void round_values(const Context& context, Matrix<const T> values, const Fp8Matrix& to,
                  float headroom) {
  const Bytes straight = to.straight, transposed = to.transposed;
  const std::uint32_t* magnitude = to.scale.magnitude.data();
  const std::size_t columns = values.extent(1);
  float* undo = to.scale.undo.data();
  std::uint32_t* saturated = headroom > 1 ? to.scale.saturated.data() : nullptr;
  detail::for_each(
      context, "tern::fp8_scale", 1, KOKKOS_LAMBDA(const std::size_t) {
        *undo = undo_scale(scale_from<Format>(magnitude, headroom));
      });
  detail::for_each_block(
      context, "tern::fp8_round", values.size(),
      KOKKOS_LAMBDA(const std::size_t begin, const std::size_t end) {
        const float scale = scale_from<Format>(magnitude, headroom);
        std::uint32_t beyond = 0;
        for (std::size_t i = begin; i < end; ++i) {
          const std::size_t row = i / columns, column = i % columns;
          const float value = static_cast<float>(values(row, column));
          // The difference is 0, or NaN unless the value is finite.
          const std::uint8_t code =
              encode<Format>(round_to<Format>(value * scale + (value - value)));
          if (straight.data()) straight(row, column) = code;
          if (transposed.data()) transposed(column, row) = code;
          beyond += Kokkos::abs(value * scale) > Format::largest;
        }
        if (saturated && beyond > 0) Kokkos::atomic_add(saturated, beyond);
      });
}

template <class Format, class T>
void numbers_of(const Context& context, const Bytes& codes, const float* undo, bool transposed,
                Matrix<T> to) {
  const std::size_t columns = to.extent(1);
  detail::for_each(
      context, "tern::fp8_numbers", to.size(), KOKKOS_LAMBDA(const std::size_t i) {
        const std::size_t row = i / columns, column = i % columns;
        const std::uint8_t code = transposed ? codes(column, row) : codes(row, column);
        to(row, column) = T(decode<Format>(code) * *undo);
      });
}

}  // namespace

template <class T>
void LargestMagnitude<T>::check() const {
  TERN_REQUIRE(magnitude.size() == 1, "a magnitude of {}", magnitude.size());
}

template <class T>
void LargestMagnitude<T>::portable(const Context& context, const LargestMagnitude& call) {
  const T* values = call.x.data();
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>> all(context.space, 0, call.x.size());
  Kokkos::parallel_reduce(
      "tern::largest_magnitude", all,
      KOKKOS_LAMBDA(const std::size_t i, std::uint32_t& most) {
        const std::uint32_t bits = float_bits(static_cast<float>(values[i])) & 0x7fffffffu;
        most = bits > most ? bits : most;
      },
      Kokkos::Max<std::uint32_t, DeviceMemory>(
          Kokkos::View<std::uint32_t, DeviceMemory, Unmanaged>(call.magnitude.data())));
}

template <class T>
void Fp8Round<T>::check() const {
  const std::size_t N = values.extent(0), C = values.extent(1);
  TERN_REQUIRE(
      N % 16 == 0 && C % 16 == 0 && to.wanted() &&
          (!to.straight.data() || to.straight.size() == values.size()) &&
          (!to.transposed.data() || (to.transposed.extent(0) == C && to.transposed.extent(1) == N)),
      "({}, {}) to {} and {} numbers", N, C, to.straight.size(), to.transposed.size());
}

template <class T>
void Fp8Round<T>::portable(const Context& context, const Fp8Round& call) {
  const Magnitude& kept = call.to.scale.magnitude;
  if (call.scaling == Scaling::current) {
    run(context, LargestMagnitude<T>{.x = call.values, .magnitude = kept});
  } else if (call.scaling == Scaling::largest) {
    const Magnitude own(reinterpret_cast<std::uint32_t*>(call.to.scale.undo.data()), 1);
    run(context, LargestMagnitude<T>{.x = call.values, .magnitude = own});
    detail::for_each(
        context, "tern::fp8_largest", 1,
        KOKKOS_LAMBDA(const std::size_t i) { kept(i) = own(i) > kept(i) ? own(i) : kept(i); });
  }
  const float headroom = call.scaling == Scaling::earlier ? 2 : 1;
  if (call.to.format == Fp8Format::e4m3)
    round_values<E4M3, T>(context, call.values, call.to, headroom);
  else
    round_values<E5M2, T>(context, call.values, call.to, headroom);
}

template <class T>
void Fp8Numbers<T>::check() const {
  const Bytes codes = transposed ? of.transposed : of.straight;
  TERN_REQUIRE(codes.extent(transposed ? 1 : 0) == to.extent(0) &&
                   codes.extent(transposed ? 0 : 1) == to.extent(1),
               "({}, {}) to ({}, {})", codes.extent(0), codes.extent(1), to.extent(0),
               to.extent(1));
}

template <class T>
void Fp8Numbers<T>::portable(const Context& context, const Fp8Numbers& call) {
  const Bytes codes = call.transposed ? call.of.transposed : call.of.straight;
  const float* undo = call.of.scale.undo.data();
  if (call.of.format == Fp8Format::e4m3)
    numbers_of<E4M3, T>(context, codes, undo, call.transposed, call.to);
  else
    numbers_of<E5M2, T>(context, codes, undo, call.transposed, call.to);
}

TERN_INSTANTIATE_PORTABLE(LargestMagnitude)
TERN_INSTANTIATE_PORTABLE(Fp8Round)
TERN_INSTANTIATE_PORTABLE(Fp8Numbers)

}  // namespace tern::ops
