/// Suggestions for misspelled names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tern {

/// The nearest of `names` by edit distance, letters of either case alike; empty if none is near.
std::string nearest(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace tern
