/// Approximate nearest matrix with orthonormal rows or columns, using only matrix products: about U
/// V^T for X = U S V^T, with singular values from 0.7 to 1.2 (Jordan et al. 2024, "Muon: an
/// optimizer for hidden layers in neural networks"). The coefficients are the published ones,
/// chosen for a steep slope at 0, not for convergence to 1. Those of Polar Express (Amsel et al.
/// 2025, arXiv 2505.16932), one triple per iteration, bring singular values closer to 1 with as
/// many products, but did not train better where tried, so they are not here.
#pragma once
#include <algorithm>

#include "ops/ops.hpp"

namespace tern::optimizer::detail {

/// Maximum size of a batch of matrices: matrices, elements of all X, of all Gram matrices.
struct BatchSize {
  std::size_t count = 0, elements = 0, gram = 0;

  /// Makes room for M matrices of R rows and C columns.
  void include(std::size_t M, std::size_t R, std::size_t C) {
    const std::size_t m = std::min(R, C);
    count = std::max(count, M);
    elements = std::max(elements, M * R * C);
    gram = std::max(gram, M * m * m);
  }
};

/// T: type of the products.
template <class T>
class NewtonSchulz {
  using A = Accumulate<T>;
  static constexpr double a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  static constexpr int iterations = 5;

 public:
  NewtonSchulz(const BatchSize& most, Arena& arena)
      : squares_(arena.vector<A>("muon squares", Term::workspace, most.count)),
        x_(arena.vector<T>("muon x", Term::workspace, most.elements)),
        next_(arena.vector<T>("muon next x", Term::workspace, most.elements)),
        gram_(arena.vector<T>("muon gram", Term::workspace, most.gram)),
        polynomial_(arena.vector<T>("muon polynomial", Term::workspace, most.gram)) {}

  /// Orthogonalises the R x C matrices at offsets `at` (M) in the span: (M, R, C). Overwritten by
  /// the next call. No host synchronization.
  Tensor3<const T> operator()(const ops::Context& context, Vector<const A> span,
                              Vector<const std::size_t> at, std::size_t R, std::size_t C) const {
    const std::size_t M = at.size(), m = std::min(R, C);
    const bool wide = R <= C;
    Tensor3<T> x(x_.data(), M, R, C), next(next_.data(), M, R, C);
    const Tensor3<T> gram(gram_.data(), M, m, m), polynomial(polynomial_.data(), M, m, m);
    const Vector<A> squares(squares_.data(), M);
    ops::sums_of_squares<A>(context, span, at, R * C, squares);
    ops::normalize<T>(context, span, at, squares, eps, x);
    const auto product = [&](double alpha, ops::Factor<T> left, ops::Factor<T> right, double beta,
                             Tensor3<const T> added, const Tensor3<T>& result) {
      ops::batched_product<T>(context, alpha, left, right, beta, added, result);
    };
    for (int i = 0; i < iterations; ++i) {
      // X <- a X + (b G + c G G) X with G = X X^T, or X <- a X + X (b G + c G G) with G = X^T X if
      // that is smaller: the same X. The symmetry of G is not used.
      product(1, {x, !wide}, {x, wide}, 0, {}, gram);
      product(c, {gram}, {gram}, b, gram, polynomial);
      if (wide)
        product(1, {polynomial}, {x}, a, x, next);
      else
        product(1, {x}, {polynomial}, a, x, next);
      std::swap(x, next);
    }
    return x;
  }

 private:
  Vector<A> squares_;
  Vector<T> x_, next_, gram_, polynomial_;
};

}  // namespace tern::optimizer::detail
