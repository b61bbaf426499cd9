#include "data/batch.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace tern::data {

void sort_rows_by_token(const std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& order) {
  order.resize(tokens.size());
  if (tokens.empty()) return;
  const auto [least, largest] = std::minmax_element(tokens.begin(), tokens.end());
  TERN_REQUIRE(*least >= 0, "token {}", *least);
  std::vector<std::int32_t> start(static_cast<std::size_t>(*largest) + 2, 0);
  for (const std::int32_t token : tokens) ++start[token + 1];
  for (std::size_t t = 1; t < start.size(); ++t) start[t] += start[t - 1];
  for (std::size_t row = 0; row < tokens.size(); ++row)
    order[start[tokens[row]]++] = static_cast<std::int32_t>(row);
}

}  // namespace tern::data
