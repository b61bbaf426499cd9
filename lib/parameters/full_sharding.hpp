/// Fully sharded parameters (ZeRO stage 3, Rajbhandari et al. 2020, section 5.3). Each rank holds
/// an equal part of each unit of the tree: masters, compute values, gradients. A layer's compute
/// values are gathered into one of two windows just before use, the next layer's meanwhile; a
/// layer's gradients are computed in one of two windows and reduce-scattered while the next layer's
/// are computed. Needed by all passes (embedding, head, vectors) is gathered once per update, and
/// its gradients are reduce-scattered once per step.
///
/// On a GPU the collectives have their own stream. Ranks of one host that reach each other's memory
/// exchange the parts of layers by copies instead, which leave the multiprocessors to other kernels
/// (comm/part_exchange.hpp). All ranks run the same layers in the same order.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "ops/core/side_stream.hpp"
#include "parameters/parameters.hpp"

namespace tern::model {

template <class T>
class FullSharding {
  using A = Accumulate<T>;

 public:
  /// `compute` and `gradient` (empty: no training) are this rank's parts of a tree with
  /// Division::units and group.size() parts.
  FullSharding(const ParameterTree& tree, Vector<T> compute, Vector<A> gradient, comm::Group& group,
               Arena& arena);

  // Constant addresses at which kernels find a parameter. Null while measuring.
  T* compute_of(const Parameter& p) const;
  A* gradient_of(const Parameter& p) const;

  // All are collective. `layer` counts the tree's layers from 0.
  /// Call after the parts changed: invalidates gathered layers, gathers again what all passes need.
  void invalidate(const ops::Context&);
  /// Call before a layer is used: later work in the context's stream sees its compute values.
  void unshard(const ops::Context&, std::size_t layer);
  /// Call before the first backward of a step.
  void zero_gradients(const ops::Context&) const;
  /// From now on a layer's backward overwrites all its gradients: they need not start from zero.
  void expect_overwritten_gradients() { zeroes_ = false; }
  /// Bracket a layer's backward: its gradients start from zero, unless they are overwritten; at the
  /// end their sum over ranks is added to the parts.
  void begin_gradients(const ops::Context&, std::size_t layer);
  void end_gradients(const ops::Context&, std::size_t layer);
  /// Call after the last backward of a step: later work in the context's stream sees the sums of
  /// all gradients in the parts.
  void finish_gradients(const ops::Context&);

 private:
  /// Buffers that a unit is gathered into.
  struct Window {
    Vector<T> values;     // (unit)
    Vector<A> gradients;  // (unit)
    std::int64_t layer = -1;
    bool exchanged = false, awaited = false;  // other ranks' parts, since they were last released
    ops::Mark gathered, summed;
  };
  struct ShardedUnit {
    Unit unit;
    std::size_t local, window;
  };

  static constexpr std::size_t layer_windows = comm::PartExchange::slots;

  const ShardedUnit& sharded_of(const Parameter& p) const;
  std::size_t part_of(const ShardedUnit& r) const {
    return r.unit.count / static_cast<std::size_t>(group_.size());
  }
  Window& window_of(std::size_t layer) { return windows_[layers_[layer].window]; }
  void copy_own(const ShardedUnit& sharded);
  void gather(const ShardedUnit& sharded);
  void sum(const ShardedUnit& sharded);
  void gather_layer(const ops::Context&, std::size_t layer);
  template <class PartFor>
  std::vector<comm::Part> parts_for_others(const PartFor& part) const;
  void exchange_values(const ShardedUnit& layer);
  void exchange_gradients(const ops::Context&, const ShardedUnit& layer);
  void add_parts(const ShardedUnit& layer);

  comm::Group& group_;
  Vector<T> compute_;
  Vector<A> gradient_;
  std::vector<ShardedUnit> layers_, kept_;  // kept_: what all passes need
  std::vector<Window> windows_;             // two for layers, then one per unit in kept_
  Matrix<T> layer_values_;                  // (layer_windows, largest layer): of their windows
  Tensor3<A> arrived_;  // (layer_windows, other ranks, largest part): their gradients
  std::unique_ptr<comm::PartExchange> values_exchange_, gradients_exchange_;  // null: collectives
  std::optional<ops::SideStream> side_;
  ops::Mark used_, finished_;
  std::int64_t last_ = -1;  // the last one passed to unshard()
  bool zeroes_ = true;      // gradients of a layer, once they are summed
};

}  // namespace tern::model
