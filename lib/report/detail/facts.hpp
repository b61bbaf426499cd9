/// Head of a report: what ran, where, how far, and how it ended.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/run_record.hpp"
#include "report/detail/history.hpp"

namespace tern::report::detail {

using Facts = std::vector<std::pair<std::string, std::string>>;  // name, text

/// Facts that only the record knows are left out without it.
Facts facts_of(const std::optional<job::RunRecord>& record, const History& history);

/// Of a rate, to four digits without decimals: "472,700", "356".
std::string rate_text(double rate);

}  // namespace tern::report::detail
