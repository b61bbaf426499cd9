#pragma once
#include "report/detail/history.hpp"
#include "report/verdict.hpp"

namespace tern::report::detail {

/// The verdict without the runs compared with.
Verdict make_verdict(const History& history, const deck::Deck& deck);

}  // namespace tern::report::detail
