#include "deck/optimizer_kind.hpp"

#include <algorithm>

namespace tern::deck {
namespace {

/// Row used while a deck with an unknown kind is checked.
constexpr OptimizerKind unknown{"", ""};

constexpr const char* of_muon[] = {"matrix_lr", "embed_lr", "head_lr", "momentum", "muon_scale"};

constexpr OptimizerKind rows[] = {
    {.name = "adamw", .title = "AdamW"},
    {.name = "muon", .title = "Muon", .whole_matrices = true, .settings = of_muon},
};

}  // namespace

const std::span<const OptimizerKind> optimizer_kinds = rows;

bool OptimizerKind::reads(std::string_view setting) const {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

const OptimizerKind& kind_of(const Optimizer& optimizer) {
  for (const OptimizerKind& kind : optimizer_kinds)
    if (optimizer.kind == kind.name) return kind;
  return unknown;
}

}  // namespace tern::deck
