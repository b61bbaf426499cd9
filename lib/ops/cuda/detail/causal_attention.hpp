/// Causal attention backward on sm_90a, deterministic: causal_attention_backward.hpp.
#pragma once
#include <cuda.h>

#include <map>

#include "ops/attention.hpp"
#include "ops/cuda/detail/causal_attention_tasks.hpp"

namespace tern::ops::cuda {

class CausalAttention {
 public:
  /// As attention_backward, for whole sequences (Tq = Tk, no offset) and views whose addresses and
  /// strides are multiples of 16 bytes. Overwrites the library's workspace instead of `delta`.
  /// False unless the pattern is causal, E = 64, T a multiple of 8, the workspace large enough and
  /// the device of compute capability 9.0; then nothing was done.
  bool backward(const Context&, const AttentionBackward<bf16>&);

 private:
  const CUtensorMap& map_of(const causal_attention::View&);

  std::map<causal_attention::View, CUtensorMap> maps_;
};

}  // namespace tern::ops::cuda
