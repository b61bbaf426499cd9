/// Recursive use of a transformer's blocks (after TRM, Jolicoeur-Martineau, arXiv 2510.04871, on a
/// causal model). Two states (N, D) accompany x, the embedded tokens: the answer y, from which the
/// head computes logits, and the latent z. One step with n = &model inner_steps is, with
/// recursion = 'stack', where f is the stack of blocks with the final norm, so that its output has
/// the scale of its input,
///
///   n times z <- f(x + y + z), then y <- f(y + z)
///
/// and with recursion = 'block', for each block b in turn, with a norm of its own, and the final
/// norm of y at the end,
///
///   n times z <- z + b(norm(x + y + z)), then y <- y + b(norm(y + z))
///
/// The first step starts from learned vectors, the same for all tokens, or with initial_states =
/// 'input' from y = x and z = 0. Gradients flow back to x and, through y and z, across the first
/// TransformerOptions::connected steps. Later steps take y and z as constants: each one's backward
/// directly follows its forward, with the memory of one step. With n = 0 there is one step, the
/// plain transformer y = f(x).
#pragma once
#include "block/norm.hpp"
#include "memory/narrow.hpp"
#include "model/detail/visits.hpp"
#include "model/pass.hpp"

namespace tern::model::detail {

/// Whether recursion = 'block'.
bool recurs_by_block(const deck::Model& model);
Declaration declare_recursion(const deck::Model& model);
/// Parameters of a block's recursion; `at`: block_name().
void declare_recursion_of_block(const deck::Model& model, const std::string& at, Declaration& d);

/// States between passes; empty unless recursive.
template <class T>
class Recursion {
  using A = Accumulate<T>;

 public:
  /// `shared` must outlive it.
  Recursion(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
            const TransformerOptions& options, const BlockShared<T>& shared, Arena& arena);

  bool recursive() const { return passes_ > 1; }
  std::size_t passes() const { return passes_; }
  bool answers(std::size_t pass) const { return pass + 1 == passes_; }

  /// Keeps the embedded rows x (N, D), before the first step.
  void begin(const ops::Context&, Matrix<const T> embedded) const;
  /// Gradient (N, D) of x, after all steps.
  void end(const ops::Context&, Matrix<T> gradient) const;

  // recursion = 'stack'; the states are results of the final norm.
  /// to (N, D): input of a pass. y and z (N, D): states left by the previous passes, not read where
  /// the step starts from the initial ones.
  void enter(const ops::Context&, std::size_t step, std::size_t pass, Matrix<const T> y,
             Matrix<const T> z, Matrix<T> to) const;
  /// Accumulates the gradients of x, of the initial states and of the previous step's states from
  /// that of a pass's input (N, D).
  void backward(const ops::Context&, std::size_t step, std::size_t pass,
                Matrix<const T> gradient) const;
  /// Adds what the next step's backward left to the gradient (N, D) of a pass's result.
  void add_carried(const ops::Context&, std::size_t step, std::size_t pass,
                   Matrix<T> gradient) const;

  // recursion = 'block'; `kept`: index of what a visit keeps for backward.
  Matrix<T> answer(std::size_t rows) const { return narrow_rows(y_, rows); }
  /// Where blocks write their outputs (N, D).
  Matrix<T> output(std::size_t rows) const { return narrow_rows(output_, rows); }
  /// to (N, D): input of the visit.
  void enter_block(const ops::Context&, const Visit&, std::size_t kept, Matrix<T> to) const;
  /// Adds output() to the state that the visit advances.
  void leave_block(const ops::Context&, const Visit&, std::size_t rows) const;
  /// Gradients (N, D) of y and z. Before a step's backward z's is 0, or the next step's backward
  /// left both; the final norm's backward adds or writes y's. With 'stack' the bracket does nothing.
  Matrix<T> answer_gradient() const { return dy_; }
  bool carried(std::size_t step) const { return step + 1 < connected_; }
  void begin_backward(const ops::Context&, std::size_t step) const;
  /// Gradient (N, D) of the output of a visit.
  Matrix<const T> output_gradient(const Visit& visit) const {
    return answers(visit.pass) ? dy_ : dz_;
  }
  /// Adds to the gradients of x, y and z, from that of the input of a visit (N, D).
  void backward_block(const ops::Context&, const Visit&, std::size_t kept,
                      Matrix<const T> gradient) const;
  /// After the first step's backward: gradients of the initial states.
  void end_backward(const ops::Context&, std::size_t step) const;

 private:
  /// A learned vector that a state starts from; empty if it starts from the input.
  struct Start {
    Matrix<const T> value;  // (1, D)
    Vector<A> gradient;     // (D)
  };
  /// Kept by the norm before a block's pass.
  struct Entry {
    Matrix<T> sum;  // (N, D)
    typename Norm<T>::Saved norm;
  };

  bool from_input() const { return answer_.value.extent(0) == 0; }

  std::size_t passes_, connected_;
  bool by_block_;
  Norm<T> norm_;
  Start answer_, latent_;
  Matrix<T> x_, dx_;          // (N, D), only where recursive; gradients in training
  Matrix<T> dy_, dz_;         // (N, D), of several connected steps and of recursion = 'block'
  Matrix<T> y_, z_, output_;  // (N, D), of recursion = 'block'
  std::vector<Gain<T>> gains_;
  std::vector<Entry> entries_;
};

}  // namespace tern::model::detail
