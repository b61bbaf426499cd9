#include "base/fp8.hpp"
#include "base/error.hpp"
#include "ops/fp8.hpp"
#include "ops/portable/detail/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {

/// Copy of an operand in the workspace from element `at` on, rounded to Format under its scale.
template <class Format, class T>
Matrix<const T> quantised(const Context& context, const Fp8Workspace<T>& work, std::size_t at,
                          const Fp8Input<T>& operand) {
  const Matrix<const T> x = operand.values;
  TERN_REQUIRE(at + x.size() <= work.operands.size(), "{} + {} elements of {}", at, x.size(),
               work.operands.size());
  const Magnitude kept =
      operand.magnitude.size() > 0 ? operand.magnitude : Magnitude(work.magnitudes.data(), 1);
  if (!operand.known) largest_magnitude<T>(context, x, kept);
  const std::uint32_t* magnitude = kept.data();
  const T* from = x.data();
  T* to = work.operands.data() + at;
  detail::for_each_block(
      context, "tern::quantise", x.size(),
      KOKKOS_LAMBDA(const std::size_t begin, const std::size_t end) {
        const float scale = scale_for<Format>(float_of_bits(*magnitude));
        const float undo = undo_scale(scale);
        TERN_SIMD
        for (std::size_t i = begin; i < end; ++i)
          to[i] = T(round_to<Format>(static_cast<float>(from[i]) * scale) * undo);
      });
  return Matrix<const T>(to, x.extent(0), x.extent(1));
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
void fp8_linear_forward(const Context& context, const Fp8Workspace<T>& work,
                        const Fp8Input<T>& input, Matrix<const T> w, Vector<const T> bias,
                        Matrix<T> y, Write write) {
  const Matrix<const T> x = input.values;
  TERN_REQUIRE(
      x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) && y.extent(1) == w.extent(0),
      "({}, {}) x ({}, {})^T -> ({}, {})", x.extent(0), x.extent(1), w.extent(0), w.extent(1),
      y.extent(0), y.extent(1));
  if (!fp8_takes(x.extent(0), x.extent(1), w.extent(0)))
    return linear_forward<T>(context, x, w, bias, y, write);
  if (native<&fp8_linear_forward<T>>(context, work, input, w, bias, y, write)) return;
  const Matrix<const T> qx = quantised<E4M3, T>(context, work, 0, input);
  const Matrix<const T> qw = quantised<E4M3, T>(context, work, x.size(), w);
  linear_forward<T>(context.portable(), qx, qw, bias, y, write);
}

template <class T>
void fp8_linear_backward(const Context& context, const Fp8LinearBackward<T>& call) {
  const Matrix<const T> dy = call.dy.values, x = call.x.values;
  TERN_REQUIRE(x.extent(1) == call.w.extent(1) && dy.extent(0) == x.extent(0) &&
                   dy.extent(1) == call.w.extent(0),
               "dy ({}, {}), x ({}, {}), w ({}, {})", dy.extent(0), dy.extent(1), x.extent(0),
               x.extent(1), call.w.extent(0), call.w.extent(1));
  if (!fp8_takes(x.extent(0), x.extent(1), call.w.extent(0))) {
    linear_backward_weight<T>(context, dy, x, call.dw, call.dbias);
    return linear_backward_input<T>(context, dy, call.w, call.dx);
  }
  if (native<&fp8_linear_backward<T>>(context, call)) return;
  const Context plain = context.portable();
  const Matrix<const T> qdy = quantised<E5M2, T>(context, call.work, 0, call.dy);
  const Matrix<const T> qx = quantised<E4M3, T>(context, call.work, dy.size(), call.x);
  linear_backward_weight<T>(plain, qdy, qx, call.dw, {});
  if (call.dbias.size() > 0) column_sums<T>(plain, dy, call.dbias);
  const Matrix<const T> qw = quantised<E4M3, T>(context, call.work, dy.size(), call.w);
  linear_backward_input<T>(plain, qdy, qw, call.dx);
}

#define INSTANTIATE(T)                                            \
  template decltype(largest_magnitude<T>) largest_magnitude<T>;   \
  template decltype(fp8_linear_forward<T>) fp8_linear_forward<T>; \
  template decltype(fp8_linear_backward<T>) fp8_linear_backward<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops
