/// Lines of the tables that a plan prints.
#pragma once
#include <fmt/format.h>

#include <string>

namespace tern::plan::detail {

inline std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<18} {:>22}\n", name, value);
}

/// Explanation below a row.
inline std::string remark(const std::string& text) { return fmt::format("{:21}({})\n", "", text); }

inline std::string duration(double seconds) {
  return seconds < 90     ? fmt::format("{:.1f} s", seconds)
         : seconds < 5400 ? fmt::format("{:.1f} min", seconds / 60)
                          : fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace tern::plan::detail
