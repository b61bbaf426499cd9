/// Names of metrics for people.
#pragma once
#include <string>
#include <string_view>

namespace tern::report::detail {

/// "val/loss" -> "Validation loss"; of a metric that is not known, its words.
std::string title_of(std::string_view metric);

/// What tells a curve from the others of its plot: "train/loss_plan" -> "plan, training".
std::string legend_of(std::string_view metric);

}  // namespace tern::report::detail
