/// What the deck's checks and the tasks ask of an objective: one row per &objective kind. How it reads
/// data and what its rows are is in objective/kind.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "deck/deck.hpp"

namespace tern::deck {

struct ObjectiveKind {
  const char* name;
  /// Whether &data may name token shards, and what its sample files (.jsonl) hold and how they are
  /// set; empty: it may not name any.
  bool shards = true;
  const char* samples = "";
  /// Why it does not work with learned positions; empty: it does.
  const char* repeats_positions = "";
  /// Whether its rows can be shown token by token (--show-batch).
  bool shows_rows = false;
  /// Rows hold each sequence twice, noised and clean; the last token of the vocabulary is the mask;
  /// text is generated block by block.
  bool diffuses = false;
  /// The model takes supervision_steps steps over each row and is scored after each.
  bool refines = false;
  /// Prompts are questions in a chat template.
  bool answers = false;
  /// &model window is supported.
  bool windows = false;
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
