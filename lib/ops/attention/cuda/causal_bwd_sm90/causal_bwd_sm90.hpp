/// Causal attention backward on sm_90a, deterministic: launch.hpp.
#pragma once
#include "ops/attention/cuda/sm90_common/tensor_maps.hpp"

namespace tern::ops::cuda {

class CausalBackwardSm90 {
 public:
  /// As attention_backward, for whole sequences (Tq = Tk, no offset) and views whose addresses and
  /// strides are multiples of 16 bytes. Overwrites the library's workspace instead of `delta`.
  /// False unless the pattern is causal, E = 64 or 128, T a multiple of 8, the workspace large enough and
  /// the device of compute capability 9.0; then nothing was done.
  template <class T>
  bool backward(const Context&, const AttentionBackward<T>&);

 private:
  sm90::TensorMaps maps_;
};

}  // namespace tern::ops::cuda
