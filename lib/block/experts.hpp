/// MoE feed-forward half of a block (Qwen3-MoE): a router selects k of X experts per token; the
/// branch is the weighted sum of their outputs.
///
/// Weights are applied between an expert's two products. Their gradients are computed there as
/// well, so no layer keeps the experts' outputs (N k, D).
///
/// Tensor ranks divide each expert; every rank routes all tokens.
#pragma once
#include "block/dimensions.hpp"
#include "block/shared.hpp"
#include "ops/ops.hpp"
#include "parameters/declaration.hpp"

namespace tern::model {

/// `at`: e.g. "model/layers/0/mlp/".
void declare_experts(const deck::Model& model, const std::string& at, Declaration& d);
std::vector<Divided> divided_of_experts(const deck::Model& model);

template <class T>
class Experts {
  using A = Accumulate<T>;

 public:
  struct Parameters {
    Linear<T> router;           // (X, D)
    GroupedLinear<T> up, down;  // (2F, D), (D, F) each
  };
  /// Kept by forward for backward, which overwrites it and also needs x.
  struct Saved {
    Matrix<T> up;             // (N k, 2F) in the order of the routing
    Matrix<T> activated;      // (N k, F), weighted
    Matrix<A> probabilities;  // (N, X)
    Matrix<A> weights;        // (N, k)
    ops::Routing routing;
  };

  Experts(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared);
  Parameters bind(const Binder<T>& binder, const std::string& at) const;
  Saved request(Arena& arena, const std::string& label, std::size_t rows) const;
  Saved narrow(const Saved& whole, std::size_t rows) const;
  /// Workspace for passes of `rows` tokens over `places` expert layers.
  void request_workspace(Arena& arena, std::size_t rows, std::size_t places, bool training);

  /// From x (N, D) the input of the last maps.
  void forward(const ops::Context&, const Parameters&, const Saved&, Matrix<const T> x) const;
  /// Adds the branch, of the input from forward(), to the stream: BlockShared::add.
  void add(const ops::Context&, const Parameters&, const Saved&, Stream<T>& to,
           Matrix<const T> added, const ops::DropoutKey&) const;
  /// dx (N, D), which may be x, from the branch's gradient (N, D). balanced: from balance(); empty:
  /// no load-balance loss.
  Stream<T> backward(const ops::Context&, const Parameters&, const Saved&, Matrix<const T> x,
                     Matrix<const T> dbranch, Vector<const A> balanced, Matrix<T> dx) const;

  /// Records counts for balance(), in training: call after the forward of each place.
  void tally(const ops::Context&, const Saved&, std::size_t place) const;
  /// Load-balance loss (1) of the pass over `rows` tokens and all places (ops/experts.hpp). Returns
  /// the gradient of `weight` times that by a probability (X); empty if `weight` is 0.
  Vector<const A> balance(const ops::Context&, double weight, std::size_t rows,
                          Vector<A> loss) const;

 private:
  /// values_ for the rows of a routing.
  Matrix<T> values(const Saved& s) const;

  const BlockShared<T>& shared_;
  Dimensions size_;
  bool renormalize_;
  Matrix<T> logits_;         // (N, X), and their gradient
  Matrix<T> values_;         // (N k, D) outputs of experts, or gradients of their inputs
  Matrix<A> dweights_;       // (N, k)
  Matrix<A> counts_, sums_;  // (places, X)
  Vector<A> even_, shares_;  // (X): gradient by a probability; workspace
};

}  // namespace tern::model
