// The operations of experts.hpp: see dispatch.cpp.
#include "base/error.hpp"
#include "ops/cuda/experts.hpp"
#include "ops/detail/dispatch.hpp"
#include "ops/portable/experts.hpp"

namespace tern::ops {
namespace {

template <class T>
std::size_t rows_of(const Gathered<T>& g) {
  return g.rows.extent(0) > 0 ? g.rows.extent(0) : g.values.extent(0);
}

/// The shapes of a product of R rows of `in` by X matrices into rows of `out`.
template <class T, class W>
void check_grouped(const Vector<const std::int32_t>& offsets, const Gathered<T>& in,
                   std::size_t width, const W& w, std::size_t rows, std::size_t out,
                   std::size_t to) {
  TERN_REQUIRE(offsets.extent(0) == w.count + 1 && w.count > 0, "{} offsets for {} matrices",
               offsets.extent(0), w.count);
  TERN_REQUIRE(in.values.extent(1) == width && out == to && rows_of(in) == rows &&
                   w.stride >= w.rows * w.columns,
               "{} rows of {} by ({}, {}), {} apart, to {} rows of {}", rows_of(in),
               in.values.extent(1), w.rows, w.columns, w.stride, rows, out);
}

template <class M, class K>
void check_pairs(const M& experts, const K& others, const char* what) {
  TERN_REQUIRE(experts.extent(0) == others.extent(0) && experts.extent(1) == others.extent(1),
               "({}, {}) experts, ({}, {}) {}", experts.extent(0), experts.extent(1),
               others.extent(0), others.extent(1), what);
}

}  // namespace

template <class T>
void route(const Context& context, bool renormalise, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts) {
  check_pairs(experts, weights, "weights");
  TERN_REQUIRE(experts.extent(0) == logits.extent(0) && experts.extent(1) > 0 &&
                   experts.extent(1) <= logits.extent(1) && probabilities.size() == logits.size(),
               "({}, {}) logits, {} probabilities, ({}, {}) experts", logits.extent(0),
               logits.extent(1), probabilities.size(), experts.extent(0), experts.extent(1));
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::route(context, renormalise, logits, probabilities, weights, experts);
  portable::route<T>(context, renormalise, logits, probabilities, weights, experts);
}

template <class T>
void route_backward(const Context& context, bool renormalise,
                    Matrix<const Accumulate<T>> probabilities, Matrix<const std::int32_t> experts,
                    Matrix<const Accumulate<T>> weights, Matrix<const Accumulate<T>> dweights,
                    Vector<const Accumulate<T>> balance, Matrix<T> dlogits) {
  check_pairs(experts, weights, "weights");
  check_pairs(experts, dweights, "gradients of weights");
  TERN_REQUIRE(probabilities.size() == dlogits.size() &&
                   probabilities.extent(0) == experts.extent(0) &&
                   (balance.extent(0) == 0 || balance.extent(0) == dlogits.extent(1)),
               "{} probabilities, ({}, {}) gradients of logits, {} of balance",
               probabilities.size(), dlogits.extent(0), dlogits.extent(1), balance.extent(0));
  portable::route_backward<T>(context, renormalise, probabilities, experts, weights, dweights,
                              balance, dlogits);
}

void sort_pairs(const Context& context, const Routing& routing) {
  const std::size_t pairs = routing.experts.size();
  TERN_REQUIRE(routing.pairs.extent(0) == pairs && routing.tokens.extent(0) == pairs &&
                   routing.rows.size() == pairs && routing.offsets.extent(0) > 1,
               "{} experts, {} pairs, {} tokens, {} rows, {} offsets", pairs,
               routing.pairs.extent(0), routing.tokens.extent(0), routing.rows.size(),
               routing.offsets.extent(0));
  if constexpr (detail::cuda_build)
    if (context.library) return cuda::sort_pairs(context, routing);
  portable::sort_pairs(context, routing);
}

template <class T>
void grouped_forward(const Context& context, Vector<const std::int32_t> offsets,
                     const Gathered<T>& x, const Grouped<const T>& w, Matrix<T> y) {
  check_grouped(offsets, x, w.columns, w, y.extent(0), y.extent(1), w.rows);
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::grouped_forward(context, offsets, x, w, y);
  portable::grouped_forward<T>(context, offsets, x, w, y);
}

template <class T>
void grouped_backward_input(const Context& context, Vector<const std::int32_t> offsets,
                            const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx) {
  check_grouped(offsets, dy, w.rows, w, dx.extent(0), dx.extent(1), w.columns);
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::grouped_backward_input(context, offsets, dy, w, dx);
  portable::grouped_backward_input<T>(context, offsets, dy, w, dx);
}

template <class T>
void grouped_backward_weight(const Context& context, Vector<const std::int32_t> offsets,
                             const Gathered<T>& dy, const Gathered<T>& x,
                             const Grouped<Accumulate<T>>& dw) {
  check_grouped(offsets, dy, dw.rows, dw, rows_of(x), x.values.extent(1), dw.columns);
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::grouped_backward_weight(context, offsets, dy, x, dw);
  portable::grouped_backward_weight<T>(context, offsets, dy, x, dw);
}

template <class T>
void weighted_swiglu(const Context& context, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y) {
  TERN_REQUIRE(x.extent(1) == 2 * y.extent(1) && pairs.extent(0) == y.extent(0) &&
                   x.extent(0) == y.extent(0),
               "({}, {}) to ({}, {}) of {} pairs", x.extent(0), x.extent(1), y.extent(0),
               y.extent(1), pairs.extent(0));
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::weighted_swiglu(context, x, weights, pairs, y);
  portable::weighted_swiglu<T>(context, x, weights, pairs, y);
}

template <class T>
void weighted_swiglu_backward(const Context& context, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights) {
  check_pairs(weights, dweights, "gradients of weights");
  TERN_REQUIRE(x.extent(1) == 2 * dy.extent(1) && dx.size() == x.size() &&
                   pairs.extent(0) == dy.extent(0) && x.extent(0) == dy.extent(0),
               "({}, {}) from ({}, {}) of {} pairs", x.extent(0), x.extent(1), dy.extent(0),
               dy.extent(1), pairs.extent(0));
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::weighted_swiglu_backward(context, x, weights, pairs, dy, dx, dweights);
  portable::weighted_swiglu_backward<T>(context, x, weights, pairs, dy, dx, dweights);
}

template <class T>
void combine(const Context& context, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to) {
  TERN_REQUIRE(rows.extent(0) == to.extent(0) && values.extent(1) == to.extent(1) &&
                   (added.extent(0) == 0 || added.size() == to.size()),
               "({}, {}) values, {} tokens, {} added, to ({}, {})", values.extent(0),
               values.extent(1), rows.extent(0), added.size(), to.extent(0), to.extent(1));
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::combine(context, values, rows, added, to);
  portable::combine<T>(context, values, rows, added, to);
}

template <class A>
void tally_experts(const Context& context, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums) {
  TERN_REQUIRE(offsets.extent(0) == counts.extent(0) + 1 && sums.extent(0) == counts.extent(0) &&
                   probabilities.extent(1) == sums.extent(0),
               "{} offsets, {} counts, {} sums of {} columns", offsets.extent(0), counts.extent(0),
               sums.extent(0), probabilities.extent(1));
  portable::tally_experts<A>(context, offsets, probabilities, counts, sums);
}

template <class A>
void balance_experts(const Context& context, double weight, std::size_t tokens,
                     Matrix<const A> counts, Matrix<const A> sums, Vector<A> balance,
                     Vector<A> shares, Vector<A> loss) {
  check_pairs(counts, sums, "sums");
  TERN_REQUIRE(balance.extent(0) == counts.extent(1) && shares.extent(0) == counts.extent(1),
               "{} and {} for {} experts", balance.extent(0), shares.extent(0), counts.extent(1));
  portable::balance_experts<A>(context, weight, tokens, counts, sums, balance, shares, loss);
}

#define INSTANTIATE(T)                                                                             \
  template void route<T>(const Context&, bool, Matrix<const T>, Matrix<Accumulate<T>>,             \
                         Matrix<Accumulate<T>>, Matrix<std::int32_t>);                             \
  template void route_backward<T>(const Context&, bool, Matrix<const Accumulate<T>>,               \
                                  Matrix<const std::int32_t>, Matrix<const Accumulate<T>>,         \
                                  Matrix<const Accumulate<T>>, Vector<const Accumulate<T>>,        \
                                  Matrix<T>);                                                      \
  template void grouped_forward<T>(const Context&, Vector<const std::int32_t>, const Gathered<T>&, \
                                   const Grouped<const T>&, Matrix<T>);                            \
  template void grouped_backward_input<T>(const Context&, Vector<const std::int32_t>,              \
                                          const Gathered<T>&, const Grouped<const T>&, Matrix<T>); \
  template void grouped_backward_weight<T>(const Context&, Vector<const std::int32_t>,             \
                                           const Gathered<T>&, const Gathered<T>&,                 \
                                           const Grouped<Accumulate<T>>&);                         \
  template void weighted_swiglu<T>(const Context&, Matrix<const T>, Matrix<const Accumulate<T>>,   \
                                   Vector<const std::int32_t>, Matrix<T>);                         \
  template void weighted_swiglu_backward<T>(                                                       \
      const Context&, Matrix<const T>, Matrix<const Accumulate<T>>, Vector<const std::int32_t>,    \
      Matrix<const T>, Matrix<T>, Matrix<Accumulate<T>>);                                          \
  template void combine<T>(const Context&, Matrix<const T>, Matrix<const std::int32_t>,            \
                           Matrix<const T>, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
#define INSTANTIATE_SUMS(A)                                                                   \
  template void tally_experts<A>(const Context&, Vector<const std::int32_t>, Matrix<const A>, \
                                 Vector<A>, Vector<A>);                                       \
  template void balance_experts<A>(const Context&, double, std::size_t, Matrix<const A>,      \
                                   Matrix<const A>, Vector<A>, Vector<A>, Vector<A>);
INSTANTIATE_SUMS(float)
INSTANTIATE_SUMS(double)

}  // namespace tern::ops
