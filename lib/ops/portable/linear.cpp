#include "base/error.hpp"
#include "ops/portable/detail/blas.hpp"
#include "ops/portable/detail/column_sums.hpp"
#include "ops/portable/detail/row_product.hpp"
#include "ops/portable/detail/tiled_gemm.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {
namespace {

constexpr char normal[] = "N", transposed[] = "T";

/// c = op(a) op(b), or added to c. Float and double go to a BLAS.
template <class T, class C>
void gemm(const Context& context, const char* op_a, Matrix<const T> a, const char* op_b,
          Matrix<const T> b, Matrix<C> c, Write write) {
  const std::size_t k = a.extent(op_a == normal ? 1 : 0);
  TERN_REQUIRE(c.extent(0) == a.extent(op_a == normal ? 0 : 1) &&
                   c.extent(1) == b.extent(op_b == normal ? 1 : 0) &&
                   k == b.extent(op_b == normal ? 0 : 1),
               "({}, {}){} x ({}, {}){} -> ({}, {})", a.extent(0), a.extent(1), op_a, b.extent(0),
               b.extent(1), op_b, c.extent(0), c.extent(1));
  if constexpr (std::is_same_v<T, bf16>) {
    const std::size_t wa = a.extent(1), wb = b.extent(1);
    const detail::Operand<T> left{a.data(), op_a == normal ? wa : 1, op_a == normal ? 1 : wa};
    const detail::Operand<T> right{b.data(), op_b == normal ? 1 : wb, op_b == normal ? wb : 1};
    detail::tiled_gemm<T, C>(context, left, right, c, k, write);
  } else {
    detail::blas_gemm<T>(context, op_a, op_b, 1, a, b, write == Write::add ? 1 : 0, c);
  }
}

/// y = or += x w^T, where a row's bits do not depend on the others: operands that BLAS would take
/// are multiplied here, bf16 ones always are by tiles of fixed size.
template <class T>
void product_of_rows(const Context& context, Matrix<const T> x, Matrix<const T> w, Matrix<T> y,
                     Write write) {
  const std::size_t inner = x.extent(1);
  TERN_REQUIRE(y.extent(0) == x.extent(0) && y.extent(1) == w.extent(0) && inner == w.extent(1),
               "({}, {}) x ({}, {})^T -> ({}, {})", x.extent(0), inner, w.extent(0), w.extent(1),
               y.extent(0), y.extent(1));
  if constexpr (detail::on_host && !std::is_same_v<T, bf16>)
    detail::row_product<T>(context, x, w, y, write);
  else
    detail::tiled_gemm<T, T>(context, detail::Operand<T>{x.data(), inner, 1},
                             detail::Operand<T>{w.data(), inner, 1}, y, inner, write);
}

/// y = or += bias in every row.
template <class T>
void spread_bias(const Context& context, Vector<const T> bias, Matrix<T> y, Write write) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(y.extent(1));
  const A keep = write == Write::add ? 1 : 0;
  detail::for_each_row(
      context, "bias", y.extent(0), KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        T* out = &y(row, 0);
        const T* in = bias.data();
        if (keep != 0) {
          detail::columns(team, width, [&](const int i) { out[i] = T(A(out[i]) + A(in[i])); });
        } else {
          detail::columns(team, width, [&](const int i) { out[i] = in[i]; });
        }
      });
}

}  // namespace

template <class T>
void linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                    Vector<const T> bias, Matrix<T> y, Write write) {
  if (bias.extent(0) > 0) {
    spread_bias<T>(context, bias, y, write);
    write = Write::add;
  }
  if (context.row_invariant) return product_of_rows<T>(context, x, w, y, write);
  gemm<T, T>(context, normal, x, transposed, w, y, write);
}

template <class T>
void linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                           Matrix<T> dx, Write write) {
  gemm<T, T>(context, normal, dy, normal, w, dx, write);
}

template <class T>
void linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias) {
  gemm<T, Accumulate<T>>(context, transposed, dy, normal, x, dw, Write::add);
  if (dbias.extent(0) > 0) detail::column_sums<T>(context, dy, dbias);
}

template <class T>
void column_sums(const Context& context, Matrix<const T> x, Vector<Accumulate<T>> sums) {
  detail::column_sums<T>(context, x, sums);
}

#define INSTANTIATE(T)                                                                      \
  template void linear_forward<T>(const Context&, Matrix<const T>, Matrix<const T>,         \
                                  Vector<const T>, Matrix<T>, Write);                       \
  template void linear_backward_input<T>(const Context&, Matrix<const T>, Matrix<const T>,  \
                                         Matrix<T>, Write);                                 \
  template void column_sums<T>(const Context&, Matrix<const T>, Vector<Accumulate<T>>);     \
  template void linear_backward_weight<T>(const Context&, Matrix<const T>, Matrix<const T>, \
                                          Matrix<Accumulate<T>>, Vector<Accumulate<T>>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops::portable
