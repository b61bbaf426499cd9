/// The calls of RMSNorm and LayerNorm for tests, checks of native kernels and benchmarks.
///
/// A case asks a memory for its operands by name. Checks give it random numbers on the device
/// (checks/detail/run.hpp), tests numbers of their own (tests/ops/check.hpp).
#pragma once
#include "ops/norm/norm.hpp"

namespace tern::checks {

struct NormCase {
  /// Where backward writes dx: anywhere; onto the residual's gradient; instead of x.
  enum class Place { anywhere, residual, input };
  /// Fused operations: none; sums that make x and dy; a sum with dropout that makes x, and dropout of
  /// dx in backward.
  enum class With { nothing, sums, dropout };

  ops::Norm norm;
  std::size_t N, D;
  Place place = Place::anywhere;
  With with = With::nothing;
  double eps = 1e-5;
  ops::DropoutKey dropout = {0.3, 11, 5, 2, 100};

  bool centered() const { return norm == ops::Norm::layernorm; }

  template <class T>
  struct Calls {
    ops::NormForward<T> forward;
    ops::NormBackward<T> backward;
  };
  template <class T, class Memory>
  Calls<T> calls(Memory& m) const {
    using A = Accumulate<T>;
    Calls<T> c{};
    c.forward.kind = c.backward.kind = norm;
    c.forward.eps = eps;
    c.backward.dy = m.input("dy", N, D);
    c.backward.dx = place == Place::anywhere ? m.output("dx", N, D) : m.inout("dx", N, D, 2);
    make_input(m, c);
    if (place == Place::residual) c.backward.residual = c.backward.dx;
    if (place == Place::input) c.backward.residual = m.input("residual", N, D);
    c.forward.gain = c.backward.gain = m.input("gain", D);
    if (centered()) {
      c.forward.bias = m.input("bias", D);
      c.backward.mean = c.forward.mean = m.template output<A>("mean", N);
      c.backward.dbias = m.template inout<A>("dbias", D);
    }
    c.backward.rstd = c.forward.rstd = m.template output<A>("rstd", N);
    c.forward.y = m.output("y", N, D);
    c.backward.dgain = m.template inout<A>("dgain", D);
    c.backward.partial = m.template workspace<A>(ops::norm_partials(D));
    return c;
  }
  /// Forward and backward.
  template <class T, class Memory>
  void run(const ops::Context& context, Memory& m) const {
    const Calls<T> c = calls<T>(m);
    ops::run(context, c.forward);
    ops::run(context, c.backward);
  }

 private:
  template <class T, class Memory>
  void make_input(Memory& m, Calls<T>& c) const {
    ops::PendingSum<T>& made = c.forward.made;
    if (with == With::sums) {
      made = {m.input("a", N, D), m.input("b", N, D), m.input("c", N, D), m.output("x", N, D)};
      c.backward.dy_added = m.input("dy_added", N, D);
    } else if (with == With::dropout) {
      const Matrix<T> sum = place == Place::anywhere ? m.output("x", N, D) : m.inout("x", N, D);
      made = {place == Place::anywhere ? m.input("a", N, D) : sum,
              m.input("b", N, D),
              {},
              sum,
              dropout};
      c.backward.dropped = m.output("dropped", N, D);
      c.backward.dropout = dropout;
    }
    if (with != With::nothing)
      c.forward.x = made.to;
    else
      c.forward.x = place == Place::input ? c.backward.dx : m.input("x", N, D, 2);
    c.backward.x = c.forward.x;
  }
};

}  // namespace tern::checks
