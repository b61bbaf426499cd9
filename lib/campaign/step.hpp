/// One optimizer step, and one evaluation.
#pragma once
#include "campaign/summary.hpp"
#include "data/reader.hpp"
#include "plan/workload.hpp"

namespace tern::campaign {

struct StepResult {
  double loss;                 // mean over the step's tokens, of all ranks
  double gradient_norm;        // before clipping
  bool applied;                // false: the gradient was not finite, nothing changed
  double wait_seconds;         // this rank waited for data
  std::uint64_t samples_hash;  // of this rank's samples
};

/// Forward and backward over the micro-steps, gradients summed over ranks, clip, update.
/// Collective. `step` counts from 1; `updates`: applied so far; `rate`: the learning rate.
template <class T>
StepResult train_step(plan::Workload<T>& workload, const deck::Deck& deck,
                      const plan::Layout& layout, data::Reader& reader, comm::Group& group,
                      Phases& phases, std::int64_t step, std::int64_t updates, double rate);

struct Evaluation {
  double loss;  // mean over the set's tokens
  std::int64_t tokens;
};

/// Loss over the first `evaluation.batches x per_rank` windows of the validation shards (fewer if
/// they hold fewer), whatever the number of ranks. Collective.
template <class T>
Evaluation evaluate(plan::Workload<T>& workload, const deck::Deck& deck, const plan::Layout& layout,
                    const data::Shards& shards, comm::Group& group);

}  // namespace tern::campaign
