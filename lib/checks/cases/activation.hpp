/// The calls of MLP activations for tests, checks of native kernels and benchmarks; norm.hpp says how
/// a case gets its operands.
#pragma once
#include "ops/activation/activation.hpp"

namespace tern::checks {

struct ActivationCase {
  ops::Activation kind;
  std::size_t N, F;
  bool in_place = false;  // dx is x

  std::size_t width() const { return gated(kind) ? 2 * F : F; }

  template <class T>
  struct Calls {
    ops::ActivationForward<T> forward;
    ops::ActivationBackward<T> backward;
  };
  template <class T, class Memory>
  Calls<T> calls(Memory& m) const {
    const Matrix<T> x = in_place ? m.inout("x", N, width(), 2) : m.input("x", N, width(), 2);
    const Matrix<T> dy = m.input("dy", N, F), y = m.output("y", N, F);
    const Matrix<T> dx = in_place ? x : m.output("dx", N, width());
    return {{.kind = kind, .x = x, .y = y}, {.kind = kind, .x = x, .dy = dy, .dx = dx}};
  }
  /// Forward and backward.
  template <class T, class Memory>
  void run(const ops::Context& context, Memory& m) const {
    const Calls<T> c = calls<T>(m);
    ops::run(context, c.forward);
    ops::run(context, c.backward);
  }
};

}  // namespace tern::checks
