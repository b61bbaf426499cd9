/// Interface of optimizer kinds: the update from a clipped gradient. A new kind is an Update and its
/// row (kind.hpp), in one file; a name in update.cpp, and a row in deck/optimizer_kind.cpp.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "parameters/parameters.hpp"

namespace tern::optimizer {

// A Range is of the parameter span, or of a rank's arrays, which are the span unless fully sharded
// (model::Parameters::sections).

/// One array of optimizer state. The parameters in `covered` (of the span) have this state over all
/// ranks; this rank holds its part `held` (of its arrays). Several states may share a name if they
/// cover different parameters.
template <class T>
struct State {
  std::string name;  // PyTorch's
  Range covered, held;
  Vector<Accumulate<T>> values;  // (held.count)
};

template <class T>
class Update {
 public:
  virtual ~Update() = default;
  /// Updates master and compute values of the owned range. `scale` (1): clipping factor, 0 to skip.
  /// `rate`: lr by the schedule. `step` counts applied updates, from 1. Leaves the owned range of
  /// the gradients undefined.
  virtual void apply(const ops::Context&, const model::Parameters<T>&,
                     Vector<const Accumulate<T>> scale, double rate, std::int64_t step) = 0;
  virtual std::vector<State<T>> states() const = 0;
};

/// Makes the update of &optimizer kind. `owned`: range of the rank's arrays, whose first `decayed`
/// elements belong to matrices.
template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned,
                                       std::size_t decayed, Arena& arena);

/// How the deck's update lets the span be cut into owned ranges.
model::Division division(const deck::Deck& deck);
/// Whether a rank holds only its part of parameters and gradients.
bool fully_sharded(const deck::Deck& deck, int ranks);

}  // namespace tern::optimizer
