/// A model that is planned, and run, in almost no time.
#pragma once
#include "deck/deck.hpp"

namespace tern::test {

inline deck::Model small_model(std::int64_t context, std::int64_t vocabulary) {
  deck::Model m;
  m.layers = 3, m.hidden = 64, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.ffn_hidden = 96;
  m.context = context, m.vocabulary = vocabulary;
  return m;
}

}  // namespace tern::test
