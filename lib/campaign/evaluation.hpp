/// Loss over a validation set.
#pragma once
#include <functional>
#include <optional>

#include "data/source.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// Scores the first `evaluation.rows` rows of the source (or all, if fewer), whatever per_rank and
/// the number of ranks are. `training`: the objective may adapt to the result.
/// `group`: the data ranks. `between`, if given, is called before each micro-batch with the number
/// done and the number of all; if it returns true, on all ranks, nothing is returned and nothing has
/// changed. Collective over all ranks.
template <class T>
std::optional<objective::Score> evaluate(
    workload::Workload<T>& workload, const deck::Deck& deck, const workload::Layout& layout,
    const data::Source& source, comm::Group& group, bool training,
    const std::function<bool(std::size_t, std::size_t)>& between = {});

}  // namespace tern::campaign
