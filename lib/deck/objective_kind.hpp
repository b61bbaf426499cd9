/// What the program must know of an objective outside of its class: one row per &objective kind.
#pragma once
#include <cstdint>
#include <string>

#include "deck/deck.hpp"

namespace tern::deck {

struct ObjectiveKind {
  /// What &data files of samples (.jsonl) hold for it.
  enum class Samples { none, segments, conversations };

  const char* name;
  Samples samples;
  /// Rows hold each sequence twice, noised and clean; the vocabulary's last token is the mask, and
  /// text is generated block by block.
  bool diffuses = false;
  /// The model takes supervision_steps steps over each row, each of which is scored.
  bool refines = false;
  /// A prompt is a question to a chat template, which the model answers.
  bool answers = false;
  /// A model of Transformers predicts the same way (--export).
  bool exportable = false;
  /// A run ends with a verdict.
  bool judged = false;
};

/// The row of &objective kind; one that says no to everything for a kind that the deck refuses.
const ObjectiveKind& kind_of(const Deck& deck);

/// Steps that a row is scored after; 1 unless the objective refines.
std::int64_t scored_steps(const Deck& deck);

/// For people: "causal", "block_diffusion, hdp".
std::string objective_name(const Deck& deck);

}  // namespace tern::deck
