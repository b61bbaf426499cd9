/// Attention through cuDNN's graph interface (SDPA with a flash-attention kernel underneath). The
/// sources behind this header are host C++ (the frontend's headers need no CUDA compiler), so it
/// includes nothing of Kokkos.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tern::ops::cuda {

/// Tensor of 16-bit numbers (B, heads, T, E) with any strides, in elements, but unit stride in E.
struct HeadTensor {
  const void* data;
  std::int64_t batch, head, token;  // strides
};

/// Shape that a plan is made for. Queries and keys have equal length.
struct AttentionShape {
  std::int64_t batch, heads, kv_heads, tokens, head_size;
  bool causal, fp16;  // fp16: or else bf16
  float scale;
};

class CudnnAttention {
 public:
  /// Throws InternalError if cuDNN's library does not start.
  CudnnAttention();
  ~CudnnAttention();

  struct Work {
    void* stream;  // a cudaStream_t
    void* workspace;
    std::size_t workspace_bytes;
  };
  struct Forward {
    HeadTensor q, k, v, out;
    float* lse;  // (B, H, T), packed
  };
  struct Backward {
    HeadTensor q, k, v, out, dout, dq, dk, dv;
    const float* lse;
  };
  /// False if cuDNN refuses the shape, with its reason in refusal(); then nothing was done. A batch
  /// whose plan needs more workspace than there is runs in parts. A plan is made at the first use
  /// of a shape (about 0.1 s).
  bool forward(const Work&, const AttentionShape&, const Forward&);
  /// Deterministic: no atomic sums.
  bool backward(const Work&, const AttentionShape&, const Backward&);
  const char* refusal() const;

  /// Allows atomic sums in backward plans made from now on. For measurements.
  void allow_atomics(bool allow);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace tern::ops::cuda
