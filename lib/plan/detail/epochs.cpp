#include "plan/detail/epochs.hpp"

#include "base/error.hpp"
#include "deck/rules.hpp"

namespace tern::plan::detail {
namespace {

/// What &batch global counts.
std::int64_t counted(const deck::Deck& deck, const data::SetSize& size) {
  return static_cast<std::int64_t>(deck::counts_samples(deck.batch) ? size.samples : size.rows);
}

}  // namespace

double steps_per_epoch(const deck::Deck& deck, const data::SetSize& size) {
  return static_cast<double>(counted(deck, size)) / static_cast<double>(deck.batch.global);
}

deck::Deck with_steps(deck::Deck deck, const data::SetSize& size) {
  const std::int64_t global = deck.batch.global, count = counted(deck, size);
  TERN_REQUIRE(deck.campaign.epochs > 0 && count > 0 && global > 0);
  const std::string name = fmt::format("epochs = {} of {} {}, {} per step", deck.campaign.epochs,
                                       count, deck.batch.unit, global);
  deck.campaign.max_steps = (deck.campaign.epochs * count + global - 1) / global;
  deck.campaign.epochs = 0;
  deck::check(deck, name);
  return deck;
}

}  // namespace tern::plan::detail
