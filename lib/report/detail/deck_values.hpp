#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tern::report::detail {

/// "group.name" and value in namelist syntax, in the order of the deck. `deck`: as deck::print writes
/// it into a run directory, in this version or an earlier one. Empty lists have an empty value.
std::vector<std::pair<std::string, std::string>> deck_values(const std::string& deck);

}  // namespace tern::report::detail
