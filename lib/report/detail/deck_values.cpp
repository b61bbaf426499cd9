#include "report/detail/deck_values.hpp"

#include "base/lines.hpp"

namespace tern::report::detail {

std::vector<std::pair<std::string, std::string>> deck_values(const std::string& deck) {
  std::vector<std::pair<std::string, std::string>> values;
  std::string group;
  for (const auto& [line, number, ended] : Lines(deck)) {
    if (line.starts_with('&')) group = std::string(line.substr(1)) + ".";
    const std::size_t equals = line.find(" = ");
    const bool given = line.starts_with("  ") || line.starts_with("! ");  // !: an empty list
    if (equals == line.npos || !given || group.empty()) continue;
    values.emplace_back(group + std::string(line.substr(2, equals - 2)), line.substr(equals + 3));
  }
  return values;
}

}  // namespace tern::report::detail
