#include "words/suggestion.hpp"

#include <algorithm>

namespace tern {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Levenshtein distance, case-insensitive.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view wrong, const std::vector<std::string>& names) {
  const auto found = std::min_element(
      names.begin(), names.end(),
      [&](const auto& a, const auto& b) { return distance(wrong, a) < distance(wrong, b); });
  const bool near = found != names.end() &&
                    distance(wrong, *found) <= std::max<std::size_t>(2, found->size() / 2);
  return near ? *found : std::string();
}

}  // namespace tern
