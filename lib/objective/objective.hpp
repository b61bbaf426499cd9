/// What is predicted and how it is scored. An objective turns a batch of tokens into what a pass
/// needs: inputs, targets, the weight of each row's loss, and who may attend to whom. A new
/// objective is one file that defines a class and one line in objective.cpp.
#pragma once
#include <memory>

#include "data/batch.hpp"
#include "deck/deck.hpp"
#include "ops/ops.hpp"

namespace tern::objective {

/// Device views of one prepared micro-step. N = B*T rows.
template <class T>
struct Prepared {
  Vector<const std::int32_t> inputs;    // (N) tokens
  Vector<const std::int32_t> targets;   // (N), < 0: no loss
  Vector<const std::int32_t> order;     // (N) rows sorted by input token
  Vector<const Accumulate<T>> weights;  // (N) d(loss of the whole step) / d(loss of the row)
  ops::Pattern pattern;
};

template <class T>
class Objective {
 public:
  virtual ~Objective() = default;
  /// Copies a micro-step to the device, asynchronously: `slot` numbers the micro-steps in flight
  /// since the last fence. In evaluation every row with a target weighs 1.
  virtual Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                              bool evaluating) = 0;
  virtual ops::HeadOptions head() const = 0;
};

/// What an objective is made for: micro-steps of `batch` sequences of `tokens`; `slots` of them
/// between fences; `rows_per_step` rows with targets in one optimizer step of all ranks.
struct Shape {
  std::size_t batch, tokens, slots;
  double rows_per_step;
};

/// The objective of &objective kind.
template <class T>
std::unique_ptr<Objective<T>> make_objective(const deck::Deck&, const Shape&, Arena&);

}  // namespace tern::objective
