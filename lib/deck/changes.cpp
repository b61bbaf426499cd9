#include "deck/changes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "deck/renamed.hpp"

namespace tern::deck {
namespace {

/// Fields of &model that change how it is computed, trained or loaded, not the meaning of weights.
constexpr std::array how{"load",
                         "load_rule",
                         "attention",
                         "dropout",
                         "router_loss",
                         "init_std",
                         "embed_std",
                         "head_std",
                         "init_scaled_residual",
                         "init_zero_residual",
                         "window",
                         "window_start",
                         "window_steps"};

/// Groups that say where a run is and what it writes, not what it trains.
constexpr std::array apart{"output", "cost", "generation", "parallel"};

/// The same of &campaign.
constexpr std::array own_names{"name", "task"};

template <std::size_t N>
bool among(const std::array<const char*, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

DeckChanges changes_of(const std::string& stored, const deck::Deck& deck) {
  DeckChanges changes;
  try {
    changes.before = parse_stored(stored, "the deck of the checkpoint");
  } catch (const UserError&) {
    changes.readable = false;
    return changes;
  }
  for (deck::Difference& d : deck::differences(deck, changes.before)) {
    if (d.group == "model" && !among(how, d.name))
      changes.model.push_back(std::move(d));
    else if (!among(apart, d.group) && !(d.group == "campaign" && among(own_names, d.name)))
      changes.others.push_back(std::move(d));
  }
  return changes;
}

}  // namespace tern::deck
