/// Lines of the tables that a plan prints.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "comm/mesh.hpp"
#include "plan/devices.hpp"

namespace tern::plan::detail {

inline std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<18} {:>22}\n", name, value);
}

/// Explanation below a row.
inline std::string remark(const std::string& text) { return fmt::format("{:21}({})\n", "", text); }

/// Nodes of ranks on several, and what is assumed of their network; `given`: by the user.
inline std::string node_rows(const Nodes& nodes, const comm::Extents& ranks, bool given) {
  const int count = nodes.count(ranks.ranks());
  if (count == 1) return {};
  std::string text = row("nodes", fmt::format("{} of {} ranks", count, nodes.ranks));
  if (nodes.gigabits > 0)
    text += remark(fmt::format("{:.0f} Gbit/s per rank between them{}", nodes.gigabits,
                               given ? "" : ", assumed; --network gives another rate"));
  if (nodes.divide(ranks.tensor))
    text += remark(
        fmt::format("{} tensor ranks not on one node: their sums cross the network", ranks.tensor));
  return text;
}

/// A mean of counts: whole, or with the digits that say something.
inline std::string mean_text(double mean) {
  if (mean < 1) return fmt::format("{:.2g}", mean);
  return fmt::format("{:.{}f}", mean, mean >= 100 || mean == std::floor(mean) ? 0 : 1);
}

}  // namespace tern::plan::detail
