#include <cmath>

#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/optimizer/optimizer.hpp"

namespace tern::ops {
using namespace portable;
namespace {

/// One step for a block of elements, as torch.optim.AdamW: weight decay first, then
/// w -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps).
template <class T>
struct Update {
  using A = Accumulate<T>;

  A *master, *m, *v;
  const A *gradient, *scale;
  T* copy;  // null: none
  A beta1, beta2, keep, step_size, root_correction, eps;

  KOKKOS_FUNCTION void operator()(const std::size_t begin, const std::size_t end) const {
    const A s = *scale;
    if (!(s > 0)) return;  // step skipped: 0 or NaN
    if (copy)
      run(begin, end, s, [this](const std::size_t i, const A w) { copy[i] = T(w); });
    else
      run(begin, end, s, [](std::size_t, A) {});
  }

  template <class Store>
  KOKKOS_FUNCTION void run(const std::size_t begin, const std::size_t end, const A s,
                           const Store& store) const {
    TERN_SIMD
    for (std::size_t i = begin; i < end; ++i) {
      const A g = gradient[i] * s;
      const A first = beta1 * m[i] + (A(1) - beta1) * g;
      const A second = beta2 * v[i] + (A(1) - beta2) * g * g;
      const A root = Kokkos::sqrt(second) * root_correction + eps;
      const A w = master[i] * keep - step_size * first / root;
      m[i] = first;
      v[i] = second;
      master[i] = w;
      store(i, w);
    }
  }
};

}  // namespace

template <class T>
void AdamWUpdate<T>::check() const {
  TERN_REQUIRE(gradient.size() == master.size() && m.size() == master.size() &&
                   v.size() == master.size() && copy.size() <= master.size(),
               "{} parameters, {} gradients, moments of {} and {}", master.size(), gradient.size(),
               m.size(), v.size());
}

template <class T>
void AdamWUpdate<T>::portable(const Context& context, const AdamWUpdate& call) {
  using A = Accumulate<T>;
  const double t = static_cast<double>(call.rule.step);
  // A copy that is the master itself needs no second store.
  const bool copies = call.copy.extent(0) > 0 && static_cast<const void*>(call.copy.data()) !=
                                                     static_cast<void*>(call.master.data());
  const Update<T> update{call.master.data(),
                         call.m.data(),
                         call.v.data(),
                         call.gradient.data(),
                         call.gradient_scale.data(),
                         copies ? call.copy.data() : nullptr,
                         static_cast<A>(call.rule.beta1),
                         static_cast<A>(call.rule.beta2),
                         static_cast<A>(1 - call.rule.lr * call.rule.weight_decay),
                         static_cast<A>(call.rule.lr / (1 - std::pow(call.rule.beta1, t))),
                         static_cast<A>(1 / std::sqrt(1 - std::pow(call.rule.beta2, t))),
                         static_cast<A>(call.rule.eps)};
  detail::for_each_block(context, "tern::adamw", call.master.size(), update);
}

template <class A>
void ClipScale<A>::portable(const Context& context, const ClipScale& call) {
  const A most = static_cast<A>(call.limit), undo = static_cast<A>(1 / call.loss_scale);
  Kokkos::parallel_for(
      "tern::clip_scale", Kokkos::RangePolicy<Device>(context.space, 0, 1),
      KOKKOS_LAMBDA(const int) {
        const A root = undo * Kokkos::sqrt(call.squares(0));
        call.norm(0) = root;
        call.scale(0) = !Kokkos::isfinite(call.squares(0)) ? A(0)
                        : most > 0 && root > most          ? undo * (most / root)
                                                           : undo;
      });
}

template <class A>
void MoveAverage<A>::portable(const Context& context, const MoveAverage& call) {
  const A share = static_cast<A>(1 - call.decay);
  detail::for_each(
      context, "tern::move_average", call.values.size(), KOKKOS_LAMBDA(const std::size_t i) {
        call.average(i) += share * (call.values(i) - call.average(i));
      });
}

template <class A>
void Exchange<A>::portable(const Context& context, const Exchange& call) {
  detail::for_each(
      context, "tern::exchange", call.a.size(), KOKKOS_LAMBDA(const std::size_t i) {
        const A kept = call.a(i);
        call.a(i) = call.b(i);
        call.b(i) = kept;
      });
}

TERN_INSTANTIATE_SUMS(ClipScale)
TERN_INSTANTIATE_SUMS(MoveAverage)
TERN_INSTANTIATE_SUMS(Exchange)
TERN_INSTANTIATE_PORTABLE(AdamWUpdate)

}  // namespace tern::ops
