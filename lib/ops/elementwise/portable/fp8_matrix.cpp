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
void largest_magnitude(const Context& context, Matrix<const T> x, Magnitude magnitude) {
  TERN_REQUIRE(magnitude.size() == 1, "a magnitude of {}", magnitude.size());
  if (native<&largest_magnitude<T>>(context, x, magnitude)) return;
  const T* values = x.data();
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>> all(context.space, 0, x.size());
  Kokkos::parallel_reduce(
      "tern::largest_magnitude", all,
      KOKKOS_LAMBDA(const std::size_t i, std::uint32_t& most) {
        const std::uint32_t bits = float_bits(static_cast<float>(values[i])) & 0x7fffffffu;
        most = bits > most ? bits : most;
      },
      Kokkos::Max<std::uint32_t, DeviceMemory>(
          Kokkos::View<std::uint32_t, DeviceMemory, Unmanaged>(magnitude.data())));
}

template <class T>
void fp8_round(const Context& context, Matrix<const T> values, const Fp8Matrix& to,
               Scaling scaling) {
  const std::size_t N = values.extent(0), C = values.extent(1);
  TERN_REQUIRE(
      N % 16 == 0 && C % 16 == 0 && to.wanted() &&
          (!to.straight.data() || to.straight.size() == values.size()) &&
          (!to.transposed.data() || (to.transposed.extent(0) == C && to.transposed.extent(1) == N)),
      "({}, {}) to {} and {} numbers", N, C, to.straight.size(), to.transposed.size());
  if (native<&fp8_round<T>>(context, values, to, scaling)) return;
  const Magnitude& kept = to.scale.magnitude;
  if (scaling == Scaling::current) {
    largest_magnitude<T>(context, values, kept);
  } else if (scaling == Scaling::largest) {
    const Magnitude own(reinterpret_cast<std::uint32_t*>(to.scale.undo.data()), 1);
    largest_magnitude<T>(context, values, own);
    detail::for_each(
        context, "tern::fp8_largest", 1,
        KOKKOS_LAMBDA(const std::size_t i) { kept(i) = own(i) > kept(i) ? own(i) : kept(i); });
  }
  const float headroom = scaling == Scaling::earlier ? 2 : 1;
  if (to.format == Fp8Format::e4m3)
    round_values<E4M3, T>(context, values, to, headroom);
  else
    round_values<E5M2, T>(context, values, to, headroom);
}

template <class T>
void fp8_numbers(const Context& context, const Fp8Matrix& of, bool transposed, Matrix<T> to) {
  const Bytes codes = transposed ? of.transposed : of.straight;
  TERN_REQUIRE(codes.extent(transposed ? 1 : 0) == to.extent(0) &&
                   codes.extent(transposed ? 0 : 1) == to.extent(1),
               "({}, {}) to ({}, {})", codes.extent(0), codes.extent(1), to.extent(0),
               to.extent(1));
  const float* undo = of.scale.undo.data();
  if (of.format == Fp8Format::e4m3)
    numbers_of<E4M3, T>(context, codes, undo, transposed, to);
  else
    numbers_of<E5M2, T>(context, codes, undo, transposed, to);
}

#define INSTANTIATE(T)                                          \
  template decltype(largest_magnitude<T>) largest_magnitude<T>; \
  template decltype(fp8_round<T>) fp8_round<T>;                 \
  template decltype(fp8_numbers<T>) fp8_numbers<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
