#include "report/detail/deck_values.hpp"

#include <algorithm>

namespace tern::report::detail {

std::vector<std::pair<std::string, std::string>> deck_values(const std::string& deck) {
  std::vector<std::pair<std::string, std::string>> values;
  std::string group;
  for (std::size_t from = 0; from < deck.size();) {
    const std::size_t end = std::min(deck.find('\n', from), deck.size());
    const std::string line = deck.substr(from, end - from);
    from = end + 1;
    if (line.starts_with('&')) group = line.substr(1) + ".";
    const std::size_t equals = line.find(" = ");
    const bool given = line.starts_with("  ") || line.starts_with("! ");  // !: an empty list
    if (equals == std::string::npos || !given || group.empty()) continue;
    values.emplace_back(group + line.substr(2, equals - 2), line.substr(equals + 3));
  }
  return values;
}

}  // namespace tern::report::detail
