/// Rows and samples of a plan's steps, and steps of its epochs.
#pragma once
#include "plan/plan.hpp"

namespace tern::plan {

/// Steps per epoch of the training data; nothing before they are opened.
std::optional<double> steps_per_epoch(const Plan& plan);

/// Mean samples per step; nothing for token shards, or before the data are opened.
std::optional<double> samples_per_step(const Plan& plan);

/// "32 samples in 4.4 rows", or "8 rows".
std::string step_text(const Plan& plan);

/// "updates: 66, 65.6 per epoch; each of 32 samples in 4.4 rows". The data must be open.
std::string updates_text(const Plan& plan);

}  // namespace tern::plan
