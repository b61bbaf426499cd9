/// What a kind of optimizer does with a clipped gradient. A new kind is one file that defines an
/// Update and one line in update.cpp's table.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/parameters.hpp"

namespace tern::optimizer {

/// A flat range of the parameter span: the part whose states this rank holds.
struct Range {
  std::size_t first, count;
};

/// One array of optimizer state, parallel to the owned range; `name` is PyTorch's.
template <class T>
struct State {
  std::string name;
  Vector<Accumulate<T>> values;  // (owned.count)
};

template <class T>
class Update {
 public:
  virtual ~Update() = default;
  /// Updates master and compute values of the owned range. `scale` (1): clipping factor, 0 to skip.
  /// `step` counts applied updates, from 1.
  virtual void apply(const ops::Context&, const model::Parameters<T>&,
                     Vector<const Accumulate<T>> scale, double rate, std::int64_t step) = 0;
  virtual std::vector<State<T>> states() const = 0;
};

/// The update of &optimizer kind.
template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned, Arena& arena);

}  // namespace tern::optimizer
