/// Attention under key spans on sm_90a, forward and backward, deterministic:
/// forward.hpp and backward.hpp.
#pragma once
#include "ops/attention/cuda/sm90_common/tensor_maps.hpp"

namespace tern::ops::cuda {

class BlocksSm90 {
 public:
  /// As attention_forward and attention_backward, for as many queries as keys and views whose
  /// addresses and strides are multiples of 16 bytes. Both overwrite the library's workspace,
  /// backward instead of `delta`. False unless the pattern is of spans, scale > 0, E = 64, T a
  /// multiple of 4, the workspace large enough and the device of compute capability 9.0; then
  /// nothing was done.
  template <class T>
  bool forward(const Context&, const AttentionForward<T>&);
  template <class T>
  bool backward(const Context&, const AttentionBackward<T>&);

 private:
  sm90::TensorMaps maps_;
};

}  // namespace tern::ops::cuda
