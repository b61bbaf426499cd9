#include "ops/portable/fp8.hpp"

#include "base/error.hpp"
#include "base/fp8.hpp"
#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {
namespace {

/// magnitude (1) = the largest |x|, as float's bits, which are in the order of the numbers, with
/// infinity and NaN above all.
template <class T>
void largest_magnitude(const Context& context, Matrix<const T> x,
                       Kokkos::View<std::uint32_t, DeviceMemory, Unmanaged> magnitude) {
  const T* values = x.data();
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>> all(context.space, 0, x.size());
  Kokkos::parallel_reduce(
      "largest magnitude", all,
      KOKKOS_LAMBDA(const std::size_t i, std::uint32_t& most) {
        const std::uint32_t bits = float_bits(static_cast<float>(values[i])) & 0x7fffffffu;
        most = bits > most ? bits : most;
      },
      Kokkos::Max<std::uint32_t, DeviceMemory>(magnitude));
}

/// A copy of x in the workspace from element `at` on, rounded to the format under its scale.
template <class Format, class T>
Matrix<const T> quantised(const Context& context, const Fp8Workspace<T>& work, std::size_t at,
                          Matrix<const T> x) {
  TERN_REQUIRE(at + x.size() <= work.operands.size(), "{} + {} elements of {}", at, x.size(),
               work.operands.size());
  std::uint32_t* magnitude = work.magnitudes.data();
  largest_magnitude<T>(context, x, Kokkos::View<std::uint32_t, DeviceMemory, Unmanaged>(magnitude));
  const T* from = x.data();
  T* to = work.operands.data() + at;
  detail::for_each_block(
      context, "quantise", x.size(), KOKKOS_LAMBDA(const std::size_t begin, const std::size_t end) {
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
void fp8_linear_forward(const Context& context, const Fp8Workspace<T>& work, Matrix<const T> x,
                        Matrix<const T> w, Vector<const T> bias, Matrix<T> y, Write write) {
  const Matrix<const T> qx = quantised<E4M3, T>(context, work, 0, x);
  const Matrix<const T> qw = quantised<E4M3, T>(context, work, x.size(), w);
  portable::linear_forward<T>(context, qx, qw, bias, y, write);
}

template <class T>
void fp8_linear_backward(const Context& context, const Fp8Workspace<T>& work, Matrix<const T> dy,
                         Matrix<const T> x, Matrix<const T> w, Matrix<T> dx,
                         Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias) {
  const Matrix<const T> qdy = quantised<E5M2, T>(context, work, 0, dy);
  const Matrix<const T> qx = quantised<E4M3, T>(context, work, dy.size(), x);
  portable::linear_backward_weight<T>(context, qdy, qx, dw, {});
  if (dbias.size() > 0) portable::column_sums<T>(context, dy, dbias);
  const Matrix<const T> qw = quantised<E4M3, T>(context, work, dy.size(), w);
  portable::linear_backward_input<T>(context, qdy, qw, dx);
}

#define INSTANTIATE(T)                                                                          \
  template void fp8_linear_forward<T>(const Context&, const Fp8Workspace<T>&, Matrix<const T>,  \
                                      Matrix<const T>, Vector<const T>, Matrix<T>, Write);      \
  template void fp8_linear_backward<T>(const Context&, const Fp8Workspace<T>&, Matrix<const T>, \
                                       Matrix<const T>, Matrix<const T>, Matrix<T>,             \
                                       Matrix<Accumulate<T>>, Vector<Accumulate<T>>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops::portable
