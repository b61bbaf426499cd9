#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {

template <class A>
void nesterov(const Context& context, double momentum, Vector<A> gradient,
              Vector<const A> gradient_scale, Vector<A> buffer) {
  const A mu = static_cast<A>(momentum), fresh = static_cast<A>(1 - momentum);
  A *g = gradient.data(), *b = buffer.data();
  const A* scale = gradient_scale.data();
  detail::for_each(
      context, "nesterov", gradient.size(), KOKKOS_LAMBDA(const std::size_t i) {
        if (scale[0] > 0) {
          const A clipped = scale[0] * g[i];
          b[i] += fresh * (clipped - b[i]);
          g[i] = clipped + mu * (b[i] - clipped);
        }
      });
}

template void nesterov<float>(const Context&, double, Vector<float>, Vector<const float>,
                              Vector<float>);
template void nesterov<double>(const Context&, double, Vector<double>, Vector<const double>,
                               Vector<double>);

}  // namespace tern::ops::portable
