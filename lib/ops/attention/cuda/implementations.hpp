/// The implementations of attention that &model attention admits.
#pragma once
#include "ops/attention/cuda/blocks_sm90/blocks_sm90.hpp"
#include "ops/attention/cuda/causal_bwd_sm90/causal_bwd_sm90.hpp"
#include "ops/attention/cuda/cudnn/cudnn.hpp"
#include "ops/core/cuda/library.hpp"

namespace tern::ops::cuda {

/// Each is null where it is not admitted, or not built.
class Implementations {
 public:
  explicit Implementations(NativeLibrary& library) : library_(library) {}

  CudnnAttention* cudnn() const {
    return any_sm80() && cudnn_built() ? &library_.get<CudnnAttention>() : nullptr;
  }
  CausalBackwardSm90* causal_backward_sm90() const {
    return automatic() ? &library_.get<CausalBackwardSm90>() : nullptr;
  }
  BlocksSm90* blocks_sm90() const { return automatic() ? &library_.get<BlocksSm90>() : nullptr; }
  bool any_sm80() const { return library_.attention() != AttentionChoice::portable; }
  /// A shape that cuDNN refuses is then an error, not a fallback.
  bool cudnn_required() const { return library_.attention() == AttentionChoice::cudnn; }

 private:
  bool automatic() const { return library_.attention() == AttentionChoice::automatic; }

  NativeLibrary& library_;
};

inline Implementations implementations(const Context& context) {
  return Implementations(*context.library);
}

}  // namespace tern::ops::cuda
