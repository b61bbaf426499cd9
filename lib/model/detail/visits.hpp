/// Course of a step of a model: its visits to the blocks of this stage in the order of forward, of
/// which backward is the reverse. A plain model visits each block once. A recursive one
/// (recursion.hpp) visits them several times: the whole stack in each pass, or each block in all
/// passes before the next one.
#pragma once
#include <optional>
#include <vector>

#include "deck/deck.hpp"

namespace tern::model {

/// Passes over the blocks per step.
std::size_t passes_of(const deck::Model& model);

namespace detail {

/// Source of a block's input.
enum class VisitIn {
  stream,         // the output of the visit before, or what the stage embeds or receives
  connections,    // that, connected with earlier outputs (connections.hpp)
  states,         // the sum of a recursive model's states
  normed_states,  // the norm of their sum
};

/// Use of a block's output.
enum class VisitOut {
  stream,       // the input of the next visit, whose norm reads it first
  connections,  // the next visit's, after connections
  result,       // the input of the final norm; or it is sent to the next stage
  state,        // added to a state
};

struct Visit {
  std::size_t layer, pass;  // layer: on this stage
  std::size_t kept;         // index of what forward keeps for backward: pass x layers + layer
  VisitIn in;
  VisitOut out;
  std::optional<std::size_t> result = {};  // index of the final norm that follows, if any does
};

/// `layers`: on this stage.
std::vector<Visit> visits_of(const deck::Model& model, std::size_t layers);

}  // namespace detail
}  // namespace tern::model
