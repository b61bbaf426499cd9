#include "plan/detail/epochs.hpp"

#include "base/error.hpp"

namespace tern::plan::detail {

std::int64_t steps_of_epochs(std::int64_t epochs, std::size_t rows, std::int64_t global) {
  TERN_REQUIRE(epochs > 0 && rows > 0 && global > 0);
  return (epochs * static_cast<std::int64_t>(rows) + global - 1) / global;
}

deck::Deck with_steps(deck::Deck deck, std::size_t rows) {
  const std::int64_t global = deck.batch.global;
  const std::string name =
      fmt::format("epochs = {} of {} rows, {} per step", deck.campaign.epochs, rows, global);
  deck.campaign.max_steps = steps_of_epochs(deck.campaign.epochs, rows, global);
  deck.campaign.epochs = 0;
  deck::check(deck, name);
  return deck;
}

}  // namespace tern::plan::detail
