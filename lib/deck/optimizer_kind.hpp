/// What the deck's checks ask of an optimizer: one row per &optimizer kind. How it updates is in
/// optimizer/kind.hpp.
#pragma once
#include <span>
#include <string_view>

#include "deck/deck.hpp"

namespace tern::deck {

struct OptimizerKind {
  const char *name, *title;
  /// Whether it works on whole matrices of blocks, which then neither tensor ranks nor shard =
  /// 'full' can divide.
  bool whole_matrices = false;
  /// Settings of &optimizer that not every kind reads.
  std::span<const char* const> settings = {};

  bool reads(std::string_view setting) const;
};

/// All rows; the choices of &optimizer kind.
extern const std::span<const OptimizerKind> optimizer_kinds;

/// The row of &optimizer kind; without properties for an unknown kind.
const OptimizerKind& kind_of(const Optimizer& optimizer);

}  // namespace tern::deck
