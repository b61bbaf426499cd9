/// Properties of objectives used outside of their classes: one row per &objective kind.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "deck/deck.hpp"

namespace tern::deck {

struct ObjectiveKind {
  /// Content of its &data sample files (.jsonl).
  enum class Samples { none, segments, conversations };

  const char* name;
  Samples samples;
  /// Rows hold each sequence twice, noised and clean; the last token of the vocabulary is the mask;
  /// text is generated block by block.
  bool diffuses = false;
  /// The model takes supervision_steps steps over each row and is scored after each.
  bool refines = false;
  /// Prompts are questions in a chat template.
  bool answers = false;
  /// Transformers has an equivalent model (--export).
  bool exportable = false;
  /// A run ends with a verdict.
  bool judged = false;
};

/// All rows; the choices of &objective kind.
extern const std::span<const ObjectiveKind> objective_kinds;

/// The row of &objective kind; all properties false for an unknown kind.
const ObjectiveKind& kind_of(const Deck& deck);

/// Scored steps per row; 1 unless the objective refines.
std::int64_t scored_steps(const Deck& deck);
/// Those of them, from the first, whose states pass gradients on; 1 unless the objective refines.
std::int64_t connected_steps(const Deck& deck);

/// Display name: "causal", "block_diffusion, hdp".
std::string objective_name(const Deck& deck);

}  // namespace tern::deck
