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
void adamw_update(const Context& context, const AdamWUpdate<T>& call) {
  TERN_REQUIRE(call.gradient.size() == call.master.size() && call.m.size() == call.master.size() &&
                   call.v.size() == call.master.size() && call.copy.size() <= call.master.size(),
               "{} parameters, {} gradients, moments of {} and {}", call.master.size(),
               call.gradient.size(), call.m.size(), call.v.size());
  if (native<&adamw_update<T>>(context, call)) return;
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
void clip_scale(const Context& context, Vector<const A> squares, double limit, double loss_scale,
                Vector<A> scale, Vector<A> norm) {
  const A most = static_cast<A>(limit), undo = static_cast<A>(1 / loss_scale);
  Kokkos::parallel_for(
      "tern::clip_scale", Kokkos::RangePolicy<Device>(context.space, 0, 1),
      KOKKOS_LAMBDA(const int) {
        const A root = undo * Kokkos::sqrt(squares(0));
        norm(0) = root;
        scale(0) = !Kokkos::isfinite(squares(0)) ? A(0)
                   : most > 0 && root > most     ? undo * (most / root)
                                                 : undo;
      });
}

template <class A>
void move_average(const Context& context, double decay, Vector<const A> values, Vector<A> average) {
  const A share = static_cast<A>(1 - decay);
  detail::for_each(
      context, "tern::move_average", values.size(),
      KOKKOS_LAMBDA(const std::size_t i) { average(i) += share * (values(i) - average(i)); });
}

template <class A>
void exchange(const Context& context, Vector<A> a, Vector<A> b) {
  detail::for_each(
      context, "tern::exchange", a.size(), KOKKOS_LAMBDA(const std::size_t i) {
        const A kept = a(i);
        a(i) = b(i);
        b(i) = kept;
      });
}

template decltype(adamw_update<float>) adamw_update<float>;
template decltype(adamw_update<double>) adamw_update<double>;
template decltype(adamw_update<bf16>) adamw_update<bf16>;
template decltype(adamw_update<fp16>) adamw_update<fp16>;
#define INSTANTIATE(A)                                \
  template decltype(clip_scale<A>) clip_scale<A>;     \
  template decltype(move_average<A>) move_average<A>; \
  template decltype(exchange<A>) exchange<A>;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tern::ops
