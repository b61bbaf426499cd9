/// Parameters from and to files, outside of training.
#pragma once
#include <filesystem>

#include "base/log.hpp"
#include "plan/workload.hpp"

namespace tern::campaign {

/// Fills the parameters from a Transformers directory (one with config.json), a checkpoint.h5 or
/// its folder, or the newest checkpoint below a run's folder. Throws UserError if it is of another
/// model.
template <class T>
void load_weights(plan::Workload<T>& workload, const std::filesystem::path& from, Log& log);

/// Writes the parameters as a Transformers directory.
template <class T>
void export_weights(const plan::Workload<T>& workload, const deck::Deck& deck,
                    const std::filesystem::path& directory, std::int64_t end_of_text);

}  // namespace tern::campaign
