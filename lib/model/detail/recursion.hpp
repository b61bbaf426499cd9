/// Recursive use of a transformer's blocks (after TRM, Jolicoeur-Martineau, arXiv 2510.04871, on a
/// causal model). f is the stack of blocks with the final norm, so that its output has the scale of
/// its input. Two states (N, D) accompany x, the embedded tokens: the answer y, from which the head
/// computes logits, and the latent z. One step of n = &model inner_steps:
///
///   n times z <- f(x + y + z), then y <- f(y + z)
///
/// The first step starts from learned vectors, the same for all tokens. Gradients flow back to x
/// and to the beginning of their own step, where y and z are constants (except the learned
/// vectors). So each step's backward directly follows its forward, with the memory of one step.
/// With n = 0 there is one step, the plain transformer y = f(x).
#pragma once
#include "model/declaration.hpp"
#include "model/detail/binder.hpp"
#include "model/detail/narrow.hpp"

namespace tern::model {

/// Passes over the blocks per step.
std::size_t passes_of(const deck::Model& model);

namespace detail {

Declaration declare_recursion(const deck::Model& model);

/// States between passes; empty unless recursive.
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
  /// to (N, D): input of a pass. y and z (N, D): states left by the previous passes, not read where
  /// the step starts from the learned vectors.
  void enter(const ops::Context&, std::size_t step, std::size_t pass, Matrix<const T> y,
             Matrix<const T> z, Matrix<T> to) const;
  /// Accumulates the gradients of x and of the learned vectors from that of a pass's input (N, D).
  void backward(const ops::Context&, std::size_t step, std::size_t pass,
                Matrix<const T> gradient) const;
  /// Gradient (N, D) of x, after all steps.
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
