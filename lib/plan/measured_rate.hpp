/// The training rate that a run reached, kept in its directory (rate.json) for the plans of later
/// runs, and counted only where nothing that it depends on has changed.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "plan/plan.hpp"

namespace tern::plan {

/// What a rate depends on: device, ranks and how states are divided among them, batch, precision,
/// objective and size of the model. As text, to be compared as a whole.
std::string circumstances(const Plan& plan, const comm::Extents& extents);

/// Writes the median of the rates of a run's logged steps (tokens/s of all ranks), unless they are
/// too few to tell. Replaces the file as a whole; whether it is there is not reported: the run does
/// not need it. By one rank.
void remember_rate(const std::filesystem::path& directory, const std::string& circumstances,
                   std::vector<double> rates);

/// The rate that a run in these circumstances left, and the day.
struct RememberedRate {
  double tokens_per_second;
  std::string date;
};
std::optional<RememberedRate> remembered_rate(const std::filesystem::path& directory,
                                              const std::string& circumstances);

}  // namespace tern::plan
