/// The calls of linear maps for tests, checks of native kernels and benchmarks; norm.hpp says how a
/// case gets its operands.
#pragma once
#include <cmath>

#include "ops/linear/linear.hpp"

namespace tern::checks {

struct LinearCase {
  /// What forward adds: nothing; y itself; another matrix.
  enum class Added { nothing, in_place, another };

  std::size_t N, I, O;
  bool bias = false;
  ops::Write write = ops::Write::overwrite;  // of both gradients
  Added added = Added::nothing;

  /// Of random weights: keeps the size of the numbers.
  double scale() const { return 1 / std::sqrt(static_cast<double>(I)); }

  template <class T, class Memory>
  ops::LinearForward<T> forward(Memory& m) const {
    ops::LinearForward<T> call{};
    call.x = m.input("x", N, I);
    call.w = m.input("w", O, I, scale());
    if (bias) call.bias = m.input("bias", O);
    call.y = added == Added::in_place ? m.inout("y", N, O) : m.output("y", N, O);
    if (added == Added::in_place) call.added = call.y;
    if (added == Added::another) call.added = m.input("added", N, O);
    return call;
  }
  template <class T, class Memory>
  ops::LinearBackwardInput<T> backward_input(Memory& m) const {
    return {.dy = m.input("dy", N, O),
            .w = m.input("w", O, I, scale()),
            .dx = write == ops::Write::add ? m.inout("dx", N, I) : m.output("dx", N, I),
            .write = write};
  }
  template <class T, class Memory>
  ops::LinearBackwardWeight<T> backward_weight(Memory& m) const {
    using A = Accumulate<T>;
    ops::LinearBackwardWeight<T> call{};
    call.dy = m.input("dy", N, O);
    call.x = m.input("x", N, I);
    call.dw = write == ops::Write::add ? m.template inout<A>("dw", O, I)
                                       : m.template output<A>("dw", O, I);
    if (bias) call.dbias = m.template inout<A>("dbias", O);
    call.write = write;
    return call;
  }
};

}  // namespace tern::checks
