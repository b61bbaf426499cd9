/// Causal attention backward on sm_90a, deterministic: causal_bwd_sm90/launch.hpp.
#pragma once
#include <cuda.h>

#include <map>

#include "ops/attention/attention.hpp"
#include "ops/attention/cuda/causal_bwd_sm90/tasks.hpp"

namespace tern::ops::cuda {

/// Maps of views for boxes of 64 rows and 64 columns of one head, each made once.
class TensorMaps {
 public:
  const CUtensorMap& of(const causal_bwd_sm90::View&);

 private:
  std::map<causal_bwd_sm90::View, CUtensorMap> maps_;
};

namespace causal_bwd_sm90 {

template <class T>
View view_of(const Heads<T>& x) {
  const auto stride = [&](int axis) { return static_cast<std::int64_t>(x.stride(axis)); };
  const auto extent = [&](int axis) { return static_cast<int>(x.extent(axis)); };
  return {x.data(), stride(0), stride(1), stride(2), extent(0), extent(1), extent(2), extent(3)};
}

template <class A>
TurnBack turn_of(const HeadRotation<A>& rotation) {
  const auto& rows = rotation.positions.rows;
  return {rotation.wanted() ? rotation.table.data() : nullptr,
          rows.extent(0) > 0 ? rows.data() : nullptr, rotation.positions.first};
}

}  // namespace causal_bwd_sm90

class CausalBackwardSm90 {
 public:
  /// As attention_backward, for whole sequences (Tq = Tk, no offset) and views whose addresses and
  /// strides are multiples of 16 bytes. Overwrites the library's workspace instead of `delta`.
  /// False unless the pattern is causal, E = 64 or 128, T a multiple of 8, the workspace large enough and
  /// the device of compute capability 9.0; then nothing was done.
  template <class T>
  bool backward(const Context&, const AttentionBackward<T>&);

 private:
  TensorMaps maps_;
};

}  // namespace tern::ops::cuda
