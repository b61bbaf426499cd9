#include "ops/linear/linear.hpp"
#include "base/error.hpp"
#include "ops/activation/activation.hpp"
#include "ops/core/portable/column_sums.hpp"
#include "ops/core/portable/tiled_gemm.hpp"
#include "ops/linear/portable/detail/blas.hpp"
#include "ops/linear/portable/detail/row_product.hpp"

namespace tern::ops {
using namespace portable;
namespace {

constexpr char normal[] = "N", transposed[] = "T";

/// Checks the shapes x (N, I), w (O, I) and y (N, O) of a linear map, or of their gradients.
template <class X, class W, class Y>
void require_map(const X& x, const W& w, const Y& y) {
  TERN_REQUIRE(
      x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) && y.extent(1) == w.extent(0),
      "({}, {}) x ({}, {})^T -> ({}, {})", x.extent(0), x.extent(1), w.extent(0), w.extent(1),
      y.extent(0), y.extent(1));
}

/// c = or += op(a) op(b). float and double use the BLAS.
template <class T, class C>
void gemm(const Context& context, const char* op_a, Matrix<const T> a, const char* op_b,
          Matrix<const T> b, Matrix<C> c, Write write) {
  const std::size_t k = a.extent(op_a == normal ? 1 : 0);
  if constexpr (is_half<T>) {
    const std::size_t wa = a.extent(1), wb = b.extent(1);
    const detail::Operand<T> left{a.data(), op_a == normal ? wa : 1, op_a == normal ? 1 : wa};
    const detail::Operand<T> right{b.data(), op_b == normal ? 1 : wb, op_b == normal ? wb : 1};
    detail::tiled_gemm<T, C>(context, left, right, c, k, write);
  } else {
    detail::blas_gemm<T>(context, op_a, op_b, 1, a, b, write == Write::add ? 1 : 0, c);
  }
}

/// y = or += x w^T, batch-invariant: tiles of fixed size, or row_product on the host for the types
/// that gemm() gives to the BLAS.
template <class T>
void batch_invariant_product(const Context& context, Matrix<const T> x, Matrix<const T> w,
                             Matrix<T> y, Write write) {
  const std::size_t inner = x.extent(1);
  if constexpr (detail::on_host && !is_half<T>)
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
      context, "tern::bias", y.extent(0), KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        T* out = &y(row, 0);
        const T* in = bias.data();
        if (keep != 0) {
          detail::columns(team, width, [&](const int i) { out[i] = T(A(out[i]) + A(in[i])); });
        } else {
          detail::columns(team, width, [&](const int i) { out[i] = in[i]; });
        }
      });
}

template <class X>
std::size_t stride(const Tensor3<X>& t) {
  return t.extent(1) * t.extent(2);
}
template <class X>
Vector<X> flat(const Tensor3<X>& t) {
  return Vector<X>(t.data(), t.size());
}
template <class X>
Matrix<X> matrix(const Tensor3<X>& t, std::size_t i) {
  return Matrix<X>(t.data() + i * stride(t), t.extent(1), t.extent(2));
}

template <class T>
detail::Operand<T> operand(const Factor<T>& f, bool summed_by_rows) {
  const std::size_t width = f.matrices.extent(2);
  const bool contiguous = f.transposed == summed_by_rows;  // along the summed index
  return {f.matrices.data(), contiguous ? width : 1, contiguous ? 1 : width};
}

}  // namespace

template <class T>
void linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                    Vector<const T> bias, Matrix<T> y, Matrix<const T> added) {
  require_map(x, w, y);
  if (added.size() > 0) require_map(x, w, added);
  if (native<&linear_forward<T>>(context, x, w, bias, y, added)) return;
  Write write = added.size() > 0 ? Write::add : Write::overwrite;
  if (write == Write::add && added.data() != y.data()) Kokkos::deep_copy(context.space, y, added);
  if (bias.extent(0) > 0) {
    spread_bias<T>(context, bias, y, write);
    write = Write::add;
  }
  if (context.batch_invariant) return batch_invariant_product<T>(context, x, w, y, write);
  gemm<T, T>(context, normal, x, transposed, w, y, write);
}

template <class T>
void linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                           Matrix<T> dx, Write write) {
  require_map(dx, w, dy);
  if (native<&linear_backward_input<T>>(context, dy, w, dx, write)) return;
  gemm<T, T>(context, normal, dy, normal, w, dx, write);
}

template <class T>
void linear_activation_forward(const Context& context, Activation activation, Matrix<const T> x,
                               Matrix<const T> w, Vector<const T> bias, Matrix<T> up, Matrix<T> y) {
  require_map(x, w, up);
  if (native<&linear_activation_forward<T>>(context, activation, x, w, bias, up, y)) return;
  linear_forward<T>(context, x, w, bias, up);
  activation_forward<T>(context, activation, up, y);
}

template <class T>
void linear_activation_backward(const Context& context, Activation activation, Matrix<const T> dy,
                                Matrix<const T> w, Matrix<const T> up, Matrix<T> dactivated,
                                Matrix<T> dup) {
  require_map(dactivated, w, dy);
  if (native<&linear_activation_backward<T>>(context, activation, dy, w, up, dactivated, dup))
    return;
  linear_backward_input<T>(context, dy, w, dactivated);
  activation_backward<T>(context, activation, up, dactivated, dup);
}

template <class T>
void linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias, Write write) {
  require_map(x, dw, dy);
  if (dy.extent(0) == 0 && write == Write::overwrite)
    return Kokkos::deep_copy(context.space, dw, Accumulate<T>(0));
  if (native<&linear_backward_weight<T>>(context, dy, x, dw, dbias, write)) return;
  gemm<T, Accumulate<T>>(context, transposed, dy, normal, x, dw, write);
  if (dbias.extent(0) > 0) detail::column_sums<T>(context, dy, dbias);
}

template <class T>
void column_sums(const Context& context, Matrix<const T> x, Vector<Accumulate<T>> sums) {
  TERN_REQUIRE(sums.size() == x.extent(1), "{} sums of {} columns", sums.size(), x.extent(1));
  if (native<&column_sums<T>>(context, x, sums)) return;
  detail::column_sums<T>(context, x, sums);
}

template <class T>
void batched_product(const Context& context, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d) {
  const std::size_t count = d.extent(0);
  TERN_REQUIRE(a.matrices.extent(0) == count && b.matrices.extent(0) == count &&
                   a.rows() == d.extent(1) && b.columns() == d.extent(2) && a.columns() == b.rows(),
               "{} ({}, {}) by {} ({}, {}) -> {} ({}, {})", a.matrices.extent(0), a.rows(),
               a.columns(), b.matrices.extent(0), b.rows(), b.columns(), count, d.extent(1),
               d.extent(2));
  TERN_REQUIRE(beta == 0 || (c.size() == d.size() && c.extent(1) == d.extent(1)),
               "{} ({}, {}) added to {} ({}, {})", c.extent(0), c.extent(1), c.extent(2), count,
               d.extent(1), d.extent(2));
  if (d.size() == 0) return;
  if (native<&batched_product<T>>(context, alpha, a, b, beta, c, d)) return;
  using A = Accumulate<T>;
  if constexpr (is_half<T>) {
    const detail::Scaling<T> scaling{static_cast<A>(alpha), static_cast<A>(beta), c.data()};
    const detail::Strides strides{static_cast<int>(count), stride(a.matrices), stride(b.matrices),
                                  stride(d)};
    detail::tiled_gemm<T, T>(context, operand(a, false), operand(b, true), matrix(d, 0),
                             a.columns(), scaling, strides);
  } else {
    if (beta != 0) Kokkos::deep_copy(context.space, flat(d), flat(c));
    for (std::size_t i = 0; i < count; ++i)
      detail::blas_gemm<T>(context, a.transposed ? "T" : "N", b.transposed ? "T" : "N",
                           static_cast<T>(alpha), matrix(a.matrices, i), matrix(b.matrices, i),
                           static_cast<T>(beta), matrix(d, i));
  }
}

#define INSTANTIATE(T)                                                            \
  template decltype(linear_forward<T>) linear_forward<T>;                         \
  template decltype(linear_backward_input<T>) linear_backward_input<T>;           \
  template decltype(linear_activation_forward<T>) linear_activation_forward<T>;   \
  template decltype(linear_activation_backward<T>) linear_activation_backward<T>; \
  template decltype(linear_backward_weight<T>) linear_backward_weight<T>;         \
  template decltype(column_sums<T>) column_sums<T>;                               \
  template decltype(batched_product<T>) batched_product<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
