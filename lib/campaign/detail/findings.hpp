#pragma once
#include "campaign/detail/history.hpp"
#include "campaign/verdict.hpp"

namespace tern::campaign::detail {

/// The verdict without the runs beside.
Verdict make_verdict(const History& history, const deck::Deck& deck);

}  // namespace tern::campaign::detail
