/// Titles and legends of metrics.
#pragma once
#include <string>
#include <string_view>

namespace tern::report::detail {

/// "val/loss" -> "Validation loss"; for an unknown metric, the words of its name.
std::string title_of(std::string_view metric);

/// Legend of a curve within its plot: "train/loss_plan" -> "plan, training".
std::string legend_of(std::string_view metric);

}  // namespace tern::report::detail
