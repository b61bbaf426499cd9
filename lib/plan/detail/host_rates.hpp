/// Rates of this rank's processors, from a product and a copy that are timed.
#pragma once
#include "deck/deck.hpp"

namespace tern::plan::detail {

struct HostRates {
  double flops;  // per second, of one product of the deck's feed-forward map in its storage type
  double bytes;  // per second read and written by a copy of as many numbers
};
/// Takes about a quarter of a second. Local.
HostRates time_host(const deck::Deck& deck);

}  // namespace tern::plan::detail
