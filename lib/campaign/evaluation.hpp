/// The loss over a validation set.
#pragma once
#include <functional>
#include <optional>

#include "data/source.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// Over the first `evaluation.batches x per_rank` rows of the source (fewer if it has fewer),
/// whatever the number of ranks. `training`: the objective may adapt itself to what it finds.
/// `group`: the ranks that take different data. Collective over all ranks. `stop`, if given, is
/// asked before each micro-step and tells all ranks the same; once it holds, nothing is found and
/// nothing has changed.
template <class T>
std::optional<objective::Score> evaluate(workload::Workload<T>& workload, const deck::Deck& deck,
                                         const workload::Layout& layout, const data::Source& source,
                                         comm::Group& group, bool training,
                                         const std::function<bool()>& stop = {});

}  // namespace tern::campaign
