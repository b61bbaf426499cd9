/// What a run reads, opened for its plan.
#pragma once
#include <optional>

#include "campaign/data_set.hpp"
#include "job/options.hpp"

namespace tern::campaign {

/// Data of a training deck whose plan depends on them: steps from epochs, the rows that samples make.
/// A dry run opens all that the run would read, of any task, and fails as the run would; nothing of
/// it with options.without_data. Collective.
std::optional<TrainingData> open_planned_data(const deck::Deck& deck, const job::Options& options,
                                              const comm::Mesh& mesh, Log& log);

}  // namespace tern::campaign
