/// What a kind of optimizer does with a clipped gradient. A new kind is one file that defines an
/// Update and one line in update.cpp's table.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/parameters.hpp"

namespace tern::optimizer {

/// A flat range of the parameter span, or of a rank's arrays, which are the span unless fully
/// sharded (model::Parameters::sections).
struct Range {
  std::size_t first, count;
  std::size_t end() const { return first + count; }
};
/// What a and b have in common; where that is nothing, a range of no elements.
Range common(Range a, Range b);

/// One array of optimizer state. The parameters of `covered` (of the span) have this state, on all
/// ranks together; this rank holds the part `held` of it (of its arrays). Several states may share
/// a name where they cover different parameters.
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
  /// `rate`: the schedule's, of lr. `step` counts applied updates, from 1. The owned range of the
  /// gradients is left undefined.
  virtual void apply(const ops::Context&, const model::Parameters<T>&,
                     Vector<const Accumulate<T>> scale, double rate, std::int64_t step) = 0;
  virtual std::vector<State<T>> states() const = 0;
};

/// The update of &optimizer kind. `owned`: of the rank's arrays, of which the first `decayed`
/// elements belong to matrices.
template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned,
                                       std::size_t decayed, Arena& arena);

/// How the update of the deck lets the span be cut into owned ranges.
model::Division division(const deck::Deck& deck);
/// Whether a rank holds its part of parameters and gradients alone.
bool fully_sharded(const deck::Deck& deck, int ranks);

}  // namespace tern::optimizer
