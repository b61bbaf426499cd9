/// All that a training run keeps on its device, made in one place: constructed with a measuring
/// arena it is the memory plan, with an allocating one it is the run.
#pragma once
#include <memory>
#include <optional>

#include "comm/mesh.hpp"
#include "generate/block_sampler.hpp"
#include "generate/engine.hpp"
#include "model/transformer.hpp"
#include "objective/objective.hpp"
#include "optimizer/optimizer.hpp"

namespace tern::workload {

/// How the sequences of a step fall on ranks and micro-steps.
struct Layout {
  std::size_t per_rank;      // sequences of one micro-step of one rank
  std::size_t global;        // sequences of one optimizer step
  std::size_t accumulation;  // micro-steps a step: global = per_rank * data ranks * accumulation
  std::size_t tokens;        // positions of one sequence
};

/// Throws UserError if global is not a multiple of per_rank x ranks, with the nearest values that
/// work. per_rank must be resolved (nonzero); where a preset gives it, a divisor of it is taken if
/// that is what the ranks leave. `ranks`: those of the data direction.
Layout make_layout(const deck::Deck& deck, int ranks);

/// The mesh that the deck asks for, of all ranks. Throws UserError where the model or the number of
/// ranks does not fit. Collective.
std::unique_ptr<comm::Mesh> make_mesh(const deck::Deck& deck);
/// The same where those ranks are not, to plan with (comm::Mesh::imagined): of so many ranks, or of
/// those that the deck names; data = 0 is taken as 1.
std::unique_ptr<comm::Mesh> imagined_mesh(const deck::Deck& deck, int ranks = 0);

/// The levels that block diffusion samples, by the deck.
std::vector<generate::LevelRule> level_rules(const deck::Deck& deck);

template <class T>
struct Workload {
  using A = Accumulate<T>;

  /// The share of this rank of `mesh`, which must outlive the workload.
  Workload(const deck::Deck& deck, const Layout& layout, const comm::Mesh& mesh, Arena& arena);
  Workload(const Workload&) = delete;  // the parts refer to each other
  Workload& operator=(const Workload&) = delete;

  model::ParameterTree tree;
  ops::Context context;
  model::Parameters<T> parameters;
  model::Transformer<T> model;
  std::unique_ptr<objective::Objective<T>> objective;
  std::optional<optimizer::Optimizer<T>> optimizer;  // task = 'train' only
  std::optional<generate::Engine<T>> writer;         // causal, unless &generation samples = 0
  std::optional<generate::BlockSampler<T>> sampler;  // block_diffusion, where something is sampled
  Vector<A> losses;                                  // (M) of the current micro-step
  Vector<std::int32_t> best;                         // (M) in evaluation, if the objective wants it
  Matrix<A> loss_sums;  // (1 + parts, accumulation x steps), whole and by parts
  Vector<A> balances;   // (accumulation) of experts; empty: the model is dense, or not trained
};

}  // namespace tern::workload
