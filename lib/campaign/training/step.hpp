/// One optimizer step.
#pragma once
#include <optional>
#include <vector>

#include "data/reader.hpp"
#include "profile/phases.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

struct StepResult {
  double loss;                        // mean over the step's tokens on all ranks
  std::vector<double> parts;          // likewise, of the objective's parts
  double gradient_norm;               // before clipping, unscaled
  std::optional<double> router_loss;  // MoE: mean over micro-batches, unweighted
  std::optional<double> saturated;    // fp8: numbers beyond their scale, on all ranks
  bool applied;                       // false: gradient not finite, nothing changed
  double wait_seconds;                // this rank's wait for data
  std::uint64_t samples_hash;         // this rank's rows
  data::Counts counts;                // the step's rows on all ranks
};

/// What all steps of a run work with.
template <class T>
struct StepContext {
  workload::Workload<T>& workload;
  const deck::Deck& deck;
  const workload::Layout& layout;
  const comm::Mesh& mesh;
  data::Reader& reader;
  profile::Phases& phases;
};

/// What changes from step to step.
struct StepNumbers {
  std::int64_t step;     // from 1
  std::int64_t updates;  // applied so far
  double rate;           // learning rate
  double loss_scale;     // factor of the gradients between loss and clipping (loss_scale.hpp)
};

/// Forward and backward over the micro-batches, gradients summed over ranks, clipping, update.
/// Collective.
template <class T>
StepResult train_step(const StepContext<T>& context, const StepNumbers& numbers);

}  // namespace tern::campaign
