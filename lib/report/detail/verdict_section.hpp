#pragma once
#include <string>

#include "report/verdict.hpp"

namespace tern::report::detail {

/// The verdict as an HTML section; `last_step`: of the run, which may have continued since.
std::string verdict_section(const Verdict& verdict, std::int64_t last_step);

}  // namespace tern::report::detail
