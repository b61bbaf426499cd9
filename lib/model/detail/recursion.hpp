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
#include "model/declaration.hpp"
#include "model/detail/binder.hpp"
#include "model/detail/narrow.hpp"

namespace tern::model {

/// Passes of the stack in one step.
std::size_t passes_of(const deck::Model& model);

namespace detail {

Declaration declare_recursion(const deck::Model& model);

/// The states between passes; of a model that is not recursive empty.
template <class T>
class Recursion {
  using A = Accumulate<T>;

 public:
  Recursion(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
            std::size_t rows, bool training, Arena& arena);

  bool recursive() const { return passes_ > 1; }
  std::size_t passes() const { return passes_; }

  /// Keeps the embedded rows x (N, D), before the first step.
  void begin(const ops::Context&, Matrix<const T> embedded) const;
  /// to (N, D): what enters a pass of a step. y and z (N, D): the states that the passes before
  /// left, which are not read where the step starts from the learned vectors.
  void enter(const ops::Context&, std::size_t step, std::size_t pass, Matrix<const T> y,
             Matrix<const T> z, Matrix<T> to) const;
  /// From the gradient (N, D) of what entered a pass: its shares of x and of the learned vectors.
  void backward(const ops::Context&, std::size_t step, std::size_t pass,
                Matrix<const T> gradient) const;
  /// The gradient (N, D) of x, after all steps.
  void end(const ops::Context&, Matrix<T> gradient) const;

 private:
  /// A learned vector that a state starts from.
  struct Start {
    Matrix<const T> value;  // (1, D)
    Vector<A> gradient;     // (D)
  };

  std::size_t passes_;
  Start answer_, latent_;
  Matrix<T> x_, dx_;  // (N, D), only where recursive; dx_ in training
};

}  // namespace detail
}  // namespace tern::model
