/// Loss over a validation set.
#pragma once
#include <functional>
#include <optional>

#include "data/source.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// Scores the first `evaluation.rows` rows of the source (or all, if fewer), whatever per_rank and
/// the number of ranks are. `training`: the objective may adapt to the result.
/// `group`: the data ranks. `stop`, if given, is called before each micro-batch and returns the
/// same on all ranks; if true, nothing is returned and nothing has changed. Collective over all
/// ranks.
template <class T>
std::optional<objective::Score> evaluate(workload::Workload<T>& workload, const deck::Deck& deck,
                                         const workload::Layout& layout, const data::Source& source,
                                         comm::Group& group, bool training,
                                         const std::function<bool()>& stop = {});

}  // namespace tern::campaign
