/// Recursive use of a transformer's blocks (after TRM, Jolicoeur-Martineau, arXiv 2510.04871, on a
/// causal model). f is the stack of blocks with the final norm, so that what it gives has the scale
/// of what it is given again. Over x, the embedded tokens, stand two states, each (N, D): the
/// answer y, of which the head makes logits, and the latent z. One step of n = &model inner_steps:
///
///   n times z <- f(x + y + z), then y <- f(y + z)
///
/// The first step starts from learned vectors, the same for all tokens. A gradient reaches back to
/// the beginning of its own step, where y and z count as constants (but for the learned vectors),
/// and to x. So each step's backward follows its forward at once, and the memory is that of one
/// step. With n = 0 a step is the plain transformer, y = f(x), and there is one.
#pragma once
#include <functional>

#include "model/transformer.hpp"

namespace tern::model {

/// Passes of the stack in one step, for TransformerOptions.
std::size_t passes_of(const deck::Model& model);

template <class T>
class Recursion {
  using A = Accumulate<T>;

 public:
  /// Runs the transformer's block at `place` for a step, counted from 0. In generation each place
  /// of each step has keys and values of its own.
  using Block = std::function<void(std::size_t step, std::size_t place)>;

  /// `transformer` was made for passes_of(model), and must outlive this.
  Recursion(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
            Transformer<T>& transformer, bool training, Arena& arena);

  /// Embeds the rows; before the first step. The dropout key's `layer` is that of the first stream.
  void embed(const ops::Context&, const Rows& rows, const ops::DropoutKey& dropout = {});
  /// The same where the embedded rows stand in the transformer's entry(0) already.
  void begin(const ops::Context&);
  /// The next step; y (N, D), which the transformer's head reads until the one after.
  Matrix<const T> advance(const ops::Context&, const ops::Pattern&, const ops::DropoutKey& = {});
  Matrix<const T> advance(const ops::Context&, const Block& block);

  /// Backward of the step advanced to last, after the transformer's loss_backward of it.
  void backward(const ops::Context&, const ops::Pattern&, const ops::DropoutKey& = {});
  /// After all steps, with the rows that embed() was given.
  void embed_backward(const ops::Context&, const Rows& rows);

 private:
  /// A learned vector that a state starts from.
  struct Start {
    Matrix<const T> value;  // (1, D)
    Vector<A> gradient;     // (D)
  };

  bool recursive() const { return passes_ > 1; }
  ops::DropoutKey key(ops::DropoutKey dropout, std::size_t step) const;
  void blocks_backward(const ops::Context&, std::size_t pass, const ops::Pattern&,
                       const ops::DropoutKey&);

  Transformer<T>& transformer_;
  std::size_t passes_;
  std::size_t steps_ = 0;  // since embed()
  Start answer_, latent_;
  Matrix<T> x_, dx_;  // (N, D), only where recursive; dx_ in training
};

}  // namespace tern::model
