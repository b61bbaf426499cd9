/// Fully sharded parameters (ZeRO stage 3, Rajbhandari et al. 2020, section 5.3). Each rank holds
/// one of equal parts of each unit of the tree: masters, compute values, gradients. A layer's
/// compute values are gathered into one of two windows just before they are used, those of the
/// next layer meanwhile; a layer's gradients are made in one of two windows and summed over ranks,
/// each part going to its rank, while the next layer's are made. What all passes need (embedding,
/// head, vectors) is gathered once after each update, and its gradients are summed once a step.
///
/// On a GPU, gathering and summing go through a stream of their own. All ranks must run the same
/// layers in the same order.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "model/parameters.hpp"
#include "ops/side_stream.hpp"

namespace tern::model {

template <class T>
class Residence {
  using A = Accumulate<T>;

 public:
  /// `compute` and `gradient` (empty: no training) are this rank's parts of the tree, which was
  /// made for Division::units of group.size() parts.
  Residence(const ParameterTree& tree, Vector<T> compute, Vector<A> gradient, comm::Group& group,
            Arena& arena);

  // Where kernels find a parameter: always the same address. Null while measuring.
  T* compute_of(const Parameter& p) const;
  A* gradient_of(const Parameter& p) const;

  // Collective, all of them. `layer` counts the tree's layers from 0.
  /// After the parts changed: what was gathered is forgotten, and what all passes need is gathered
  /// again.
  void renew(const ops::Context&);
  /// Before a layer is used: what follows in the context's stream finds its compute values.
  void need(const ops::Context&, std::size_t layer);
  /// Before the first backward of a step.
  void zero_gradients(const ops::Context&) const;
  /// Around a layer's backward: its gradients start from zero, and are then added, summed over
  /// ranks, to the parts.
  void begin_gradients(const ops::Context&, std::size_t layer);
  void end_gradients(const ops::Context&, std::size_t layer);
  /// After the last backward of a step: what follows in the context's stream finds the sums of all
  /// gradients in the parts.
  void finish_gradients(const ops::Context&);

 private:
  /// Where a unit is gathered.
  struct Window {
    Vector<T> values;     // (unit)
    Vector<A> gradients;  // (unit)
    std::int64_t layer = -1;
    ops::Mark gathered, summed;
  };
  struct Place {
    Unit unit;
    std::size_t local, window;
  };

  const Place& place_of(const Parameter& p) const;
  Window& window_of(std::size_t layer) { return windows_[layers_[layer].window]; }
  void gather(const Place& place);
  void sum(const Place& place);
  void gather_layer(const ops::Context&, std::size_t layer);

  comm::Group& group_;
  Vector<T> compute_;
  Vector<A> gradient_;
  std::vector<Place> layers_, kept_;  // kept_: what all passes need
  std::vector<Window> windows_;       // two of layers, then one for each of kept_
  std::optional<ops::SideStream> side_;
  ops::Mark used_, finished_;
  std::int64_t last_ = -1;  // the layer needed last
};

}  // namespace tern::model
