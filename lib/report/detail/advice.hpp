/// What to change in a deck of recursive refinement, in words: clauses in the imperative.
#pragma once
#include <string>

#include "deck/deck.hpp"

namespace tern::report::detail {

std::string raise_reward(const deck::Deck& deck);
/// The learning rate where there is no reward to lower.
std::string lower_reward(const deck::Deck& deck);
std::string lower_rate(const deck::Deck& deck);
/// After losses or gradients that are not finite: the gentlest preset, or else a lower rate.
std::string calm(const deck::Deck& deck);
/// So that verdict_bars::least_logged steps are logged after the warmup.
std::string log_more(const deck::Deck& deck);
/// So that there is a first evaluation and a last.
std::string evaluate_more(const deck::Deck& deck);

}  // namespace tern::report::detail
