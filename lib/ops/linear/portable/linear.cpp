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
void LinearForward<T>::check() const {
  require_map(x, w, y);
  if (added.size() > 0) require_map(x, w, added);
}

template <class T>
void LinearForward<T>::portable(const Context& context, const LinearForward& call) {
  Write write = call.added.size() > 0 ? Write::add : Write::overwrite;
  if (write == Write::add && call.added.data() != call.y.data())
    Kokkos::deep_copy(context.space, call.y, call.added);
  if (call.bias.extent(0) > 0) {
    spread_bias<T>(context, call.bias, call.y, write);
    write = Write::add;
  }
  if (context.batch_invariant)
    return batch_invariant_product<T>(context, call.x, call.w, call.y, write);
  gemm<T, T>(context, normal, call.x, transposed, call.w, call.y, write);
}

template <class T>
void LinearBackwardInput<T>::check() const {
  require_map(dx, w, dy);
}

template <class T>
void LinearBackwardInput<T>::portable(const Context& context, const LinearBackwardInput& call) {
  gemm<T, T>(context, normal, call.dy, normal, call.w, call.dx, call.write);
}

template <class T>
void LinearActivationForward<T>::check() const {
  require_map(x, w, up);
}

template <class T>
void LinearActivationForward<T>::portable(const Context& context,
                                          const LinearActivationForward& call) {
  run(context, LinearForward<T>{.x = call.x, .w = call.w, .bias = call.bias, .y = call.up});
  run(context, ActivationForward<T>{.kind = call.activation, .x = call.up, .y = call.y});
}

template <class T>
void LinearActivationBackward<T>::check() const {
  require_map(dactivated, w, dy);
}

template <class T>
void LinearActivationBackward<T>::portable(const Context& context,
                                           const LinearActivationBackward& call) {
  run(context, LinearBackwardInput<T>{.dy = call.dy, .w = call.w, .dx = call.dactivated});
  run(context, ActivationBackward<T>{
                   .kind = call.activation, .x = call.up, .dy = call.dactivated, .dx = call.dup});
}

template <class T>
void LinearBackwardWeight<T>::check() const {
  require_map(x, dw, dy);
}

template <class T>
void LinearBackwardWeight<T>::portable(const Context& context, const LinearBackwardWeight& call) {
  if (call.dy.extent(0) == 0 && call.write == Write::overwrite)
    return Kokkos::deep_copy(context.space, call.dw, Accumulate<T>(0));
  gemm<T, Accumulate<T>>(context, transposed, call.dy, normal, call.x, call.dw, call.write);
  if (call.dbias.extent(0) > 0) detail::column_sums<T>(context, call.dy, call.dbias);
}

template <class T>
void ColumnSums<T>::check() const {
  TERN_REQUIRE(sums.size() == x.extent(1), "{} sums of {} columns", sums.size(), x.extent(1));
}

template <class T>
void ColumnSums<T>::portable(const Context& context, const ColumnSums& call) {
  detail::column_sums<T>(context, call.x, call.sums);
}

template <class T>
void BatchedProduct<T>::check() const {
  const std::size_t count = d.extent(0);
  TERN_REQUIRE(a.matrices.extent(0) == count && b.matrices.extent(0) == count &&
                   a.rows() == d.extent(1) && b.columns() == d.extent(2) && a.columns() == b.rows(),
               "{} ({}, {}) by {} ({}, {}) -> {} ({}, {})", a.matrices.extent(0), a.rows(),
               a.columns(), b.matrices.extent(0), b.rows(), b.columns(), count, d.extent(1),
               d.extent(2));
  TERN_REQUIRE(beta == 0 || (c.size() == d.size() && c.extent(1) == d.extent(1)),
               "{} ({}, {}) added to {} ({}, {})", c.extent(0), c.extent(1), c.extent(2), count,
               d.extent(1), d.extent(2));
}

template <class T>
void BatchedProduct<T>::portable(const Context& context, const BatchedProduct& call) {
  const std::size_t count = call.d.extent(0);
  if (call.d.size() == 0) return;
  using A = Accumulate<T>;
  if constexpr (is_half<T>) {
    const detail::Scaling<T> scaling{static_cast<A>(call.alpha), static_cast<A>(call.beta),
                                     call.c.data()};
    const detail::Strides strides{static_cast<int>(count), stride(call.a.matrices),
                                  stride(call.b.matrices), stride(call.d)};
    detail::tiled_gemm<T, T>(context, operand(call.a, false), operand(call.b, true),
                             matrix(call.d, 0), call.a.columns(), scaling, strides);
  } else {
    if (call.beta != 0) Kokkos::deep_copy(context.space, flat(call.d), flat(call.c));
    for (std::size_t i = 0; i < count; ++i)
      detail::blas_gemm<T>(context, call.a.transposed ? "T" : "N", call.b.transposed ? "T" : "N",
                           static_cast<T>(call.alpha), matrix(call.a.matrices, i),
                           matrix(call.b.matrices, i), static_cast<T>(call.beta),
                           matrix(call.d, i));
  }
}

TERN_INSTANTIATE_PORTABLE(LinearForward)
TERN_INSTANTIATE_PORTABLE(LinearBackwardInput)
TERN_INSTANTIATE_PORTABLE(LinearActivationForward)
TERN_INSTANTIATE_PORTABLE(LinearActivationBackward)
TERN_INSTANTIATE_PORTABLE(LinearBackwardWeight)
TERN_INSTANTIATE_PORTABLE(ColumnSums)
TERN_INSTANTIATE_PORTABLE(BatchedProduct)

}  // namespace tern::ops
