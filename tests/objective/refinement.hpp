/// Decks and batches of recursive refinement.
#pragma once
#include "objective/harness.hpp"

namespace tern::test {

inline deck::Deck refinement_deck() {
  deck::Deck deck = tiny_deck();
  deck.model.inner_steps = 2;
  deck.objective.kind = "refinement";
  deck.objective.supervision_steps = 3;
  return deck;
}

/// Next-token prediction on sequences of equal length, a whole step of its own.
inline data::Batch causal_batch(std::size_t sequences, std::size_t length,
                                const std::vector<std::int32_t>& inputs,
                                const std::vector<std::int32_t>& targets) {
  data::Batch batch;
  batch.sequences = sequences;
  batch.tokens_per_sequence = length;
  for (std::size_t row = 0; row < sequences; ++row) batch.samples.push_back(row);
  batch.inputs = inputs;
  batch.targets = targets;
  batch.step.tokens[data::only_level] = batch.step.data_tokens =
      static_cast<std::int64_t>(sequences * length);
  return batch;
}

inline data::Batch random_batch(const deck::Deck& deck, std::size_t sequences, std::size_t length) {
  const std::size_t rows = sequences * length;
  return causal_batch(sequences, length, random_tokens(rows, deck.model.vocabulary, 2),
                      random_tokens(rows, deck.model.vocabulary, 3));
}

}  // namespace tern::test
