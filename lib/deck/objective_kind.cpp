#include "deck/objective_kind.hpp"

namespace tern::deck {
namespace {

/// Row used while a deck with an unknown kind is checked.
constexpr ObjectiveKind unknown{.name = ""};

constexpr ObjectiveKind rows[] = {
    {.name = "causal", .windows = true, .exportable = true},
    {.name = "block_diffusion",
     .samples = "problems; set train to .jsonl files of {\"question\": ..., \"answer\": ...}",
     .repeats_positions = "block diffusion repeats positions",
     .diffuses = true},
    {.name = "refinement", .refines = true, .judged = true},
    {.name = "supervised",
     .shards = false,
     .samples = "conversations; set train to .jsonl files of {\"messages\": [...]}",
     .repeats_positions = "positions restart with each conversation",
     .shows_rows = true,
     .answers = true,
     .exportable = true},
};

}  // namespace

const std::span<const ObjectiveKind> objective_kinds = rows;

const ObjectiveKind& kind_of(const Deck& deck) {
  for (const ObjectiveKind& kind : objective_kinds)
    if (deck.objective.kind == kind.name) return kind;
  return unknown;
}

std::int64_t scored_steps(const Deck& deck) {
  return kind_of(deck).refines ? deck.objective.supervision_steps : 1;
}

std::int64_t connected_steps(const Deck& deck) {
  return std::min(scored_steps(deck), deck.objective.detach_from + 1);
}

std::string objective_name(const Deck& deck) {
  const Objective& o = deck.objective;
  return kind_of(deck).diffuses ? o.kind + ", " + o.hierarchy : o.kind;
}

}  // namespace tern::deck
