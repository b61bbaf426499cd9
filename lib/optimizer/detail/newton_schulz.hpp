/// The nearest matrix with orthonormal rows or columns, roughly, by products alone: for
/// X = U S V^T, about U V^T with singular values from 0.7 to 1.2 (Jordan et al. 2024, "Muon: an
/// optimizer for hidden layers in neural networks"). The coefficients are the published ones,
/// chosen for a steep slope at 0, not for convergence to 1.
#pragma once
#include <algorithm>

#include "ops/ops.hpp"

namespace tern::optimizer::detail {

/// T: type of the products.
template <class T>
class NewtonSchulz {
  using A = Accumulate<T>;
  static constexpr double a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  static constexpr int iterations = 5;

 public:
  /// Workspace for matrices of up to `elements` elements whose lesser side is at most `side`.
  NewtonSchulz(std::size_t elements, std::size_t side, Arena& arena)
      : squares_(arena.vector<A>("muon squares", Term::workspace, 1)),
        x_(arena.vector<T>("muon x", Term::workspace, elements)),
        next_(arena.vector<T>("muon next x", Term::workspace, elements)),
        gram_(arena.vector<T>("muon gram", Term::workspace, side * side)),
        polynomial_(arena.vector<T>("muon polynomial", Term::workspace, side * side)) {}

  /// `from` (R, C) orthogonalised: (R, C), or (C, R), transposed, where R > C. Overwritten by the
  /// next call. No synchronisation with the host.
  Matrix<const T> operator()(const ops::Context& context, Matrix<const A> from) const {
    const std::size_t m = std::min(from.extent(0), from.extent(1)), n = from.size() / m;
    Matrix<T> x(x_.data(), m, n), next(next_.data(), m, n);
    const Matrix<T> gram(gram_.data(), m, m), polynomial(polynomial_.data(), m, m);
    ops::sum_of_squares<A>(context, Vector<const A>(from.data(), from.size()), squares_);
    ops::normalize<T>(context, from, squares_, eps, x);
    for (int i = 0; i < iterations; ++i) {
      // X <- (a I + b G + c G G) X with G = X X^T
      ops::linear_forward<T>(context, x, x, {}, gram);
      ops::linear_backward_input<T>(context, gram, gram, polynomial);
      ops::combine<T>(context, a, b, gram, c, polynomial);
      ops::linear_backward_input<T>(context, polynomial, x, next);
      std::swap(x, next);
    }
    return x;
  }

 private:
  Vector<A> squares_;
  Vector<T> x_, next_, gram_, polynomial_;
};

}  // namespace tern::optimizer::detail
