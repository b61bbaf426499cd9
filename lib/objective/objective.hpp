/// Objective: what is predicted and how it is scored. It turns a batch of tokens into the inputs of
/// a pass: tokens, targets, loss weight per row, attention mask; and in evaluation losses into
/// metrics. A new objective is a class and its row (kind.hpp), in one file; a line in kind.cpp, and a
/// row in deck/objective_kind.cpp.
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

/// A loss reported next to the total: the sum of its weights (M) times the losses of one step.
template <class T>
struct Part {
  Vector<const Accumulate<T>> weights;
  std::size_t step = 0;
};

/// Device views of one prepared micro-batch. N = B*T rows, M of them scored.
template <class T>
struct Prepared {
  model::Rows rows;
  ops::Pattern pattern;
  model::Scored scored;
  /// (M) d(loss of the optimizer step) / d(loss of the row); of the first model step if there are
  /// several.
  Vector<const Accumulate<T>> weights;
  std::vector<Part<T>> parts;  // one per name in the objective's parts()
};

/// Results of an evaluation.
struct Score {
  double loss = 0;          // mean per token, in nats
  std::int64_t tokens = 0;  // scored tokens
  /// Metrics of the objective: "val/loss_plan"; "val/accuracy_t/0.275", at time 0.275.
  std::map<std::string, double> metrics;
};

template <class T>
class Objective {
 public:
  virtual ~Objective() = default;
  /// Copies a micro-batch to the device, asynchronously. `slot` numbers the micro-batches since the
  /// last fence; the result stays valid for Shape::in_flight of them. In evaluation every scored
  /// token has weight 1.
  virtual Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                              bool evaluating) = 0;
  virtual ops::HeadOptions head() const = 0;

  // A recursive model takes several steps, each of which is scored (model/transformer.hpp).
  virtual std::size_t steps() const { return 1; }
  /// Weights (M) of a step after the first, from the losses (M) of the previous step.
  virtual Vector<const Accumulate<T>> weights_of(const ops::Context&, std::size_t step,
                                                 const Prepared<T>&,
                                                 Vector<const Accumulate<T>> losses);

  /// Losses reported next to the total, as train/loss_NAME.
  virtual std::vector<std::string> parts() const { return {}; }
  /// Constant added to the weighted sum of row losses.
  virtual double constant() const { return 0; }
  /// Metrics from the parts' losses, as train/NAME.
  virtual std::map<std::string, double> figures(const std::vector<double>& parts) const {
    static_cast<void>(parts);
    return {};
  }
  /// Training loss comparable with an evaluation's: the mean per scored token, from a step's `loss`
  /// and `parts`. `counts`: of the step.
  virtual double per_token(double loss, const std::vector<double>& parts,
                           const data::Counts& counts) const {
    static_cast<void>(parts), static_cast<void>(counts);
    return loss;
  }

  // Evaluation. Sums are added over steps, micro-batches and ranks, then passed to finalize() on
  // every rank.
  /// Model steps in an evaluation; during training perhaps fewer.
  virtual std::size_t evaluated_steps(bool training) const {
    static_cast<void>(training);
    return 1;
  }
  virtual std::size_t sums() const = 0;
  /// Whether accumulate() reads the argmax tokens.
  virtual bool wants_best() const { return false; }
  /// Adds a model step of the latest prepared batch to `sums`: losses (M) and best (M) as from
  /// Transformer::loss.
  virtual void accumulate(std::size_t step, const std::vector<double>& losses,
                          const std::vector<std::int32_t>& best, std::vector<double>& sums) = 0;
  /// Evaluation results from the sums. When `training`, may adapt the objective to them.
  virtual Score finalize(const std::vector<double>& sums, bool training) = 0;

  // Objective state in a checkpoint, by name.
  virtual std::map<std::string, double> state() const { return {}; }
  virtual void restore(const std::map<std::string, double>&) {}
};

/// Shape of an objective's micro-batches.
struct Shape {
  std::size_t batch, tokens;  // rows, positions per row
  std::size_t slots;          // micro-batches between fences
  std::size_t in_flight = 1;  // between a forward pass and its backward pass (pipelines)
};

/// Makes the objective of &objective kind.
template <class T>
std::unique_ptr<Objective<T>> make_objective(const deck::Deck&, const Shape&, Arena&);

}  // namespace tern::objective
