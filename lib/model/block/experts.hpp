/// The feed-forward half of a block that is made of experts (Qwen3-MoE): a router gives each token
/// k of the X experts, and the token's branch is the weighted sum of theirs.
///
/// The weights are applied to what stands between an expert's two products. So the gradient of a
/// weight is found there too, and no layer keeps the experts' results (N k, D).
///
/// Tensor ranks divide each expert, and all of them route all tokens.
#pragma once
#include "model/block/common.hpp"
#include "model/declaration.hpp"
#include "model/dimensions.hpp"
#include "ops/ops.hpp"

namespace tern::model {

/// At "model/layers/0/mlp/".
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
  /// Of forward, for backward, which writes over it. Beside it backward needs x.
  struct Saved {
    Matrix<T> up;             // (N k, 2F) by rows of the routing
    Matrix<T> activated;      // (N k, F) times their weights
    Matrix<A> probabilities;  // (N, X)
    Matrix<A> weights;        // (N, k)
    ops::Routing routing;
  };

  Experts(const deck::Model& model, const Share& share, const Common<T>& common);
  Parameters bind(const Binder<T>& binder, const std::string& at) const;
  Saved request(Arena& arena, const std::string& label, std::size_t rows) const;
  Saved narrow(const Saved& whole, std::size_t rows) const;
  std::vector<MapShape> maps() const;
  /// Workspace of passes of `rows` tokens; `places`: expert layers that a pass goes through.
  void request_workspace(Arena& arena, std::size_t rows, std::size_t places, bool training);

  /// From x (N, D).
  void forward(const ops::Context&, const Parameters&, const Saved&, Matrix<const T> x,
               const Residual<T>& residual) const;
  /// dx (N, D), which may be x, from the branch's gradient (N, D). balanced: what balance() gave;
  /// empty: the balance is no part of the loss.
  void backward(const ops::Context&, const Parameters&, const Saved&, Matrix<const T> x,
                Matrix<const T> dbranch, Vector<const A> balanced, Matrix<T> dx) const;

  /// Counts for balance(), in training: after the forward of each place.
  void tally(const ops::Context&, const Saved&, std::size_t place) const;
  /// How unevenly the experts were used in the pass over `rows` tokens, over all places as
  /// ops/experts.hpp has it, into loss (1). Returns the gradient of `weight` times that by a
  /// probability (X), for backward.
  Vector<const A> balance(const ops::Context&, double weight, std::size_t rows,
                          Vector<A> loss) const;

 private:
  /// values_ for the rows of a routing.
  Matrix<T> values(const Saved& s) const;

  const Common<T>& common_;
  Dimensions size_;
  bool renormalise_;
  Matrix<T> logits_;         // (N, X), and their gradient
  Matrix<T> values_;         // (N k, D) results of the experts, or gradients of their inputs
  Matrix<A> dweights_;       // (N, k)
  Matrix<A> counts_, sums_;  // (places, X)
  Vector<A> even_, shares_;  // (X): gradient by a probability; workspace
};

}  // namespace tern::model
