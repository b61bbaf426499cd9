/// Data of block diffusion: samples of several segments, or windows of token shards.
#pragma once
#include "data/sample_source.hpp"
#include "deck/deck.hpp"

namespace tern::objective {

/// Rules by which a deck's samples become tokens.
data::SampleRules sample_rules(const deck::Deck& deck);

}  // namespace tern::objective
