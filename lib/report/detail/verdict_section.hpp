#pragma once
#include <string>

#include "report/verdict.hpp"

namespace tern::report::detail {

/// The verdict as a section of the report's page; `last_step` is the run's, which may have gone on.
std::string verdict_section(const Verdict& verdict, std::int64_t last_step);

}  // namespace tern::report::detail
