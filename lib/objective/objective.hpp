/// What is predicted and how it is scored. An objective turns a batch of tokens into what a pass
/// needs: inputs, targets, the weight of each row's loss, and who may attend to whom; and in
/// evaluation turns losses into figures. A new objective is one file that defines a class and one
/// line in objective.cpp.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.hpp"
#include "deck/deck.hpp"
#include "model/transformer.hpp"
#include "ops/ops.hpp"

namespace tern::objective {

/// A loss reported beside the total: the sum of its weights (M) times the losses of one step.
template <class T>
struct Part {
  Vector<const Accumulate<T>> weights;
  std::size_t step = 0;
};

/// Device views of one prepared micro-step. N = B*T rows, M of them scored.
template <class T>
struct Prepared {
  model::Rows rows;
  ops::Pattern pattern;
  model::Scored scored;
  /// (M) d(loss of the whole step) / d(loss of the row); where the model takes several steps, of
  /// the first.
  Vector<const Accumulate<T>> weights;
  std::vector<Part<T>> parts;  // one for each of the objective's parts()
};

/// Figures of an evaluation.
struct Score {
  double loss = 0;          // mean over the tokens, in nats
  std::int64_t tokens = 0;  // that were scored
  /// The objective's own: "val/loss_plan"; "val/accuracy_t/0.275": at a time.
  std::map<std::string, double> metrics;
};

template <class T>
class Objective {
 public:
  virtual ~Objective() = default;
  /// Copies a micro-step to the device, asynchronously: `slot` numbers the micro-steps in flight
  /// since the last fence. In evaluation every scored token weighs 1.
  virtual Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                              bool evaluating) = 0;
  virtual ops::HeadOptions head() const = 0;

  // A recursive model takes steps, each of which is scored (model/transformer.hpp).
  virtual std::size_t steps() const { return 1; }
  /// Weights (M) of a step after the first, from the losses (M) of the step before.
  virtual Vector<const Accumulate<T>> weights_of(const ops::Context&, std::size_t step,
                                                 const Prepared<T>&,
                                                 Vector<const Accumulate<T>> losses);

  /// Losses reported beside the total, as train/loss_NAME.
  virtual std::vector<std::string> parts() const { return {}; }
  /// What the loss is beside the weighted sum of the rows' losses.
  virtual double constant() const { return 0; }
  /// Figures made of the parts' losses, as train/NAME.
  virtual std::map<std::string, double> figures(const std::vector<double>& parts) const {
    static_cast<void>(parts);
    return {};
  }
  /// Of a training step with this loss, the figure that an evaluation's loss is compared with: the
  /// mean over its scored tokens. `counts`: of the step.
  virtual double per_token(double loss, const std::vector<double>& parts,
                           const data::Counts& counts) const {
    static_cast<void>(parts), static_cast<void>(counts);
    return loss;
  }

  // Evaluation. Sums are added up over steps, micro-steps and ranks, then concluded from on every
  // rank.
  /// Steps that an evaluation takes; beside training perhaps fewer.
  virtual std::size_t evaluated_steps(bool training) const {
    static_cast<void>(training);
    return 1;
  }
  virtual std::size_t sums() const = 0;
  /// Whether tally() reads the likeliest tokens.
  virtual bool wants_best() const { return false; }
  /// Adds a step of the batch prepared last to `sums`: losses (M) and best (M) as Transformer::loss
  /// gives them.
  virtual void tally(std::size_t step, const std::vector<double>& losses,
                     const std::vector<std::int32_t>& best, std::vector<double>& sums) = 0;
  /// May adapt the objective to what evaluation found, when `training`.
  virtual Score conclude(const std::vector<double>& sums, bool training) = 0;

  // What a checkpoint must keep of the objective, by name.
  virtual std::map<std::string, double> state() const { return {}; }
  virtual void restore(const std::map<std::string, double>&) {}
};

/// What an objective is made for: micro-steps of `batch` rows of `tokens` positions; `slots` of
/// them between fences.
struct Shape {
  std::size_t batch, tokens, slots;
};

/// The objective of &objective kind.
template <class T>
std::unique_ptr<Objective<T>> make_objective(const deck::Deck&, const Shape&, Arena&);

/// Positions of a row (T), and the most of them that are scored, for &objective kind.
std::size_t row_positions(const deck::Deck&);
std::size_t scored_positions(const deck::Deck&);

}  // namespace tern::objective
