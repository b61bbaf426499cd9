/// Device memory of a run that trains, evaluates or generates, constructed in one place: with a
/// measuring arena it is the memory plan, with an allocating one the run.
#pragma once
#include <memory>
#include <optional>

#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "data/step_rows.hpp"
#include "generate/block_sampler.hpp"
#include "generate/engine.hpp"
#include "model/transformer.hpp"
#include "objective/objective.hpp"
#include "optimizer/optimizer.hpp"

namespace tern::workload {

/// Distribution of a step's sequences over ranks and micro-batches.
struct Layout {
  std::size_t per_rank = 0;      // sequences per micro-batch and rank
  std::size_t global = 0;        // sequences per optimizer step, at most
  std::size_t accumulation = 0;  // micro-batches: global = per_rank * data ranks * accumulation
  std::size_t tokens = 0;        // positions per sequence
  data::StepRows
      steps;  // sequences of each step; all of `global` if &batch unit = 'rows' and it has grown

  /// Micro-batches of step `step` (from 0), at most accumulation.
  std::size_t micro_batches(std::int64_t step) const;
  /// Those with a sequence, over all data ranks.
  double filled_micro_batches(std::int64_t step) const;
  /// Mean fraction of the sequences of a step's micro-batches that are not empty.
  double filled() const;
};

/// Rows that steps take of training data of `size`; if it is not known, samples are taken to have
/// rows of their own. Throws UserError if samples per step would be fewer than a row holds.
data::StepRows step_rows(const deck::Deck& deck, const data::SetSize& size);

/// With &batch unit = 'rows', throws UserError, naming the nearest values that work, if global is
/// not a multiple of per_rank x ranks; with 'samples', the rows of the largest step are rounded up
/// to one. per_rank must be resolved (nonzero); a preset's is reduced to a divisor if ranks leave
/// less. `ranks`: data ranks; `size`: of the training data.
Layout make_layout(const deck::Deck& deck, int ranks, const data::SetSize& size = {});

/// The deck's mesh over all ranks. Throws UserError if the model or the number of ranks does not
/// fit. Collective.
std::unique_ptr<comm::Mesh> make_mesh(const deck::Deck& deck);
/// The same for planning, without the ranks (comm::Mesh::for_planning): of `ranks` ranks, or (0) of
/// those that the deck names; data = 0 is taken as 1.
std::unique_ptr<comm::Mesh> planning_mesh(const deck::Deck& deck, int ranks = 0);

/// Whether pipeline stages, all but the first, leave gradients of weights for later:
/// model::TransformerOptions.
bool weights_later(const deck::Deck& deck);

/// Algorithms of the deck's products. Generation meets too many shapes to time.
ops::Products products_of(const deck::Deck& deck);

/// Levels that block diffusion samples, from the deck.
std::vector<generate::LevelRule> level_rules(const deck::Deck& deck);

template <class T>
struct Workload {
  using A = Accumulate<T>;

  /// This rank's share of the model on `mesh`, which must outlive the workload.
  Workload(const deck::Deck& deck, const Layout& layout, const comm::Mesh& mesh, Arena& arena);
  Workload(const Workload&) = delete;  // the parts refer to each other
  Workload& operator=(const Workload&) = delete;

  /// Fills the tables of the parts, and logs what fp8 leaves in bf16. Call once, after the arena
  /// allocates.
  void prepare(Log& log);

  model::ParameterTree tree;
  ops::Context context;
  model::Parameters<T> parameters;
  model::Transformer<T> model;
  std::unique_ptr<objective::Objective<T>> objective;
  std::optional<optimizer::Optimizer<T>> optimizer;  // task = 'train' only
  std::optional<generate::Engine<T>> writer;         // causal text, unless &generation samples = 0
  std::optional<generate::BlockSampler<T>> sampler;  // block_diffusion, if anything is sampled
  Vector<A> losses;                                  // (M) of the current micro-batch
  Vector<std::int32_t> best;                         // (M) in evaluation, if the objective wants it
  Matrix<A> loss_sums;         // (1 + parts, accumulation x steps): total and parts
  Vector<A> balances;          // (accumulation), experts; empty: dense model, or not trained
  std::string fp8_exceptions;  // maps that compute = 'fp8' leaves in bf16, and why; or empty
};

}  // namespace tern::workload
