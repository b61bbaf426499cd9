/// Shared by the parts of all blocks: links to other ranks, precision of products, workspace.
#pragma once
#include "model/detail/binder.hpp"
#include "model/detail/links.hpp"
#include "ops/ops.hpp"

namespace tern::model {

using detail::Binder;
using detail::Gain;
using detail::GroupedLinear;
using detail::Linear;

/// Inputs and outputs of a linear map.
struct MapShape {
  std::size_t inputs, outputs;
};

/// Input of a linear map, or gradient of its output; in fp8 with its largest magnitude, which the
/// operation that writes the matrix finds on the way.
template <class T>
using Operand = ops::Fp8Input<T>;

template <class T>
struct Common {
  using A = Accumulate<T>;

  detail::Links<T> links;
  bool in_fp8;               // linear maps
  ops::Fp8Workspace<T> fp8;  // if so
  /// In fp8, of the gradients of the residual stream and of the MLP's hidden layer.
  ops::Magnitude dstream_magnitude, dhidden_magnitude;
  Matrix<T> branch;   // (N, D), only with dropout or several tensor ranks
  Vector<A> partial;  // partial sums of norms' backward, in training

  Common(const Share& share, bool training, bool in_fp8_)
      : links(share, training), in_fp8(in_fp8_) {}

  /// Room for a magnitude; empty unless maps are in fp8.
  ops::Magnitude request_magnitude(Arena& arena, const std::string& label) const {
    return arena.vector<std::uint32_t>(label + "/magnitude", Term::activations, in_fp8 ? 1 : 0);
  }
  /// A matrix whose magnitude has been found if there is room for it.
  static Operand<T> found(Matrix<const T> values, const ops::Magnitude& magnitude) {
    return {values, magnitude, magnitude.size() > 0};
  }

  /// y = map(x) or y += map(x).
  void multiply(const ops::Context&, const Linear<T>&, const Operand<T>& x, Matrix<T> y,
                ops::Write = ops::Write::overwrite) const;
  /// to = added + map(x); `added` may be `to`, or empty.
  void multiply_add(const ops::Context&, const Linear<T>&, const Operand<T>& x,
                    Matrix<const T> added, Matrix<T> to) const;
  /// dx, which may be x, from dy; accumulates the gradients of weight and bias.
  void multiply_backward(const ops::Context&, const Linear<T>&, const Operand<T>& dy,
                         const Operand<T>& x, Matrix<T> dx) const;
};

/// Adds a branch to the stream: to = from + dropout(branch).
template <class T>
struct Residual {
  Matrix<const T> from;  // (N, D)
  Matrix<T> to;          // (N, D), may be `from`; empty: the branch is not computed
  ops::DropoutKey dropout;

  /// branch(added, to) computes to = added + this rank's part of the branch; `added` may be `to`,
  /// or empty. Parts are summed over tensor ranks.
  template <class Branch>
  void add(const ops::Context& context, const Common<T>& common, const Branch& branch) const;
};

/// Gradient of a branch (N, D) from that of the stream it was added to.
template <class T>
Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Operand<T>& dstream,
                           const ops::DropoutKey& dropout);

template <class T>
template <class Branch>
void Residual<T>::add(const ops::Context& context, const Common<T>& common,
                      const Branch& branch) const {
  if (to.extent(0) == 0) return;
  if (dropout.probability == 0 && common.links.share().tensors == 1) return branch(from, to);
  const Matrix<T> result(common.branch.data(), to.extent(0), to.extent(1));
  branch(Matrix<const T>(), result);
  common.links.sum(context, result);
  if (dropout.probability > 0) ops::dropout<T>(context, dropout, result);
  if (from.data() != to.data()) Kokkos::deep_copy(context.space, to, from);
  ops::add<T>(context, result, to);
}

}  // namespace tern::model
