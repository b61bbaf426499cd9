#include "deck/objective_kind.hpp"

namespace tern::deck {
namespace {

using Samples = ObjectiveKind::Samples;

/// Row used while a deck with an unknown kind is checked.
constexpr ObjectiveKind unknown{.name = "", .samples = Samples::none};

constexpr ObjectiveKind rows[] = {
    {.name = "causal", .samples = Samples::none, .exportable = true},
    {.name = "block_diffusion", .samples = Samples::segments, .diffuses = true},
    {.name = "refinement", .samples = Samples::none, .refines = true, .judged = true},
    {.name = "supervised", .samples = Samples::conversations, .answers = true, .exportable = true},
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
