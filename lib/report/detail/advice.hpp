/// Advice on the deck of a recursive-refinement run, as clauses in the imperative.
#pragma once
#include <string>

#include "deck/deck.hpp"

namespace tern::report::detail {

std::string raise_reward(const deck::Deck& deck);
/// Lowers the learning rate if there is no reward.
std::string lower_reward(const deck::Deck& deck);
std::string lower_rate(const deck::Deck& deck);
/// After losses or gradients that are not finite: the gentlest preset, else a lower learning rate.
std::string stabilize(const deck::Deck& deck);
/// Logs at least verdict_bars::min_logged steps after warmup.
std::string lengthen(const deck::Deck& deck);
std::string log_more(const deck::Deck& deck);
/// At least a first and a last evaluation.
std::string evaluate_more(const deck::Deck& deck);

}  // namespace tern::report::detail
