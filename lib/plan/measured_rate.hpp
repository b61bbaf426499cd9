/// Measured training rate of a run, kept in its directory (rate.json) for the plans of later runs;
/// used only if nothing it depends on has changed.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "plan/plan.hpp"

namespace tern::plan {

/// What a rate depends on: device, ranks, nodes, sharding, batch, precision, objective and model size, as
/// one text for comparison.
std::string rate_key(const Plan& plan, const comm::Extents& extents);

/// Writes the median rate of a run's logged steps (tokens/s over all ranks), unless they are too
/// few. Replaces the file as a whole; failure is not reported, since the run does not need it.
/// Called by one rank.
void store_rate(const std::filesystem::path& directory, const std::string& rate_key,
                std::vector<double> rates);

/// Rate left by a run with the same rate_key, and its date.
struct StoredRate {
  double tokens_per_second;
  std::string date;
};
std::optional<StoredRate> stored_rate(const std::filesystem::path& directory,
                                      const std::string& rate_key);

}  // namespace tern::plan
