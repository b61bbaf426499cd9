#include "deck/changes.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

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

/// A printed deck in this version's names. Earlier ones counted validation in batches of per_rank
/// rows.
std::string in_todays_names(std::string deck) {
  const auto number_after = [&](std::string_view name) {
    const std::size_t at = deck.find(name);
    return at == deck.npos ? 0 : std::strtoll(deck.c_str() + at + name.size(), nullptr, 10);
  };
  constexpr std::string_view batches = "\n  batches = ";
  const std::size_t at = deck.find(batches);
  if (at == deck.npos) return deck;
  const std::int64_t rows = number_after(batches) * number_after("\n  per_rank = ");
  const std::size_t end = deck.find('\n', at + batches.size());
  return deck.replace(at, std::min(end, deck.size()) - at,
                      fmt::format("\n  rows = {}", std::max<std::int64_t>(1, rows)));
}

}  // namespace

DeckChanges changes_of(const std::string& stored, const deck::Deck& deck) {
  DeckChanges changes;
  try {
    changes.before = deck::parse(in_todays_names(stored), "the deck of the checkpoint");
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
