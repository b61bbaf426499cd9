/// Library handles, plans and workspace shared by all native kernels.
#pragma once
#include <cstddef>
#include <memory>

#include "ops/context.hpp"

namespace tern::ops::cuda {

class MatrixProduct;    // cuBLASLt: detail/matrix_product.hpp
class AlgorithmSearch;  // of cuBLASLt: detail/algorithm_search.hpp
class SkinnyGemm;       // skinny GEMM: detail/skinny_gemm.hpp
class Fp8Product;       // cuBLASLt: detail/fp8_product.hpp
class CudnnAttention;   // cuDNN: detail/cudnn_attention.hpp
class CausalAttention;  // backward on Hopper: detail/causal_attention.hpp
class SpanAttention;    // on Hopper: detail/span_attention.hpp

}  // namespace tern::ops::cuda

namespace tern::ops {

/// Made once per campaign by make_context. Used from one host thread and one stream; operations run
/// in the order of that stream, so all of them share one workspace.
class NativeLibrary {
 public:
  /// `attention`: 'auto' (as cuda/attention.cpp states), 'portable' (the portable version) or
  /// 'cudnn' (cuDNN for whole sequences). Requests the workspace from the arena. A measuring arena
  /// touches no device. Throws UserError for 'cudnn' in a build without it.
  NativeLibrary(Arena& arena, const char* attention, Products products);
  ~NativeLibrary();
  NativeLibrary(const NativeLibrary&) = delete;
  NativeLibrary& operator=(const NativeLibrary&) = delete;

  /// Largest scratch of any operation.
  static constexpr std::size_t workspace_bytes = std::size_t{256} << 20;
  static constexpr std::size_t product_bytes = std::size_t{64} << 20;  // of a cuBLASLt product
  /// Aligned to 256 bytes, as cuBLASLt demands; null while measuring.
  void* workspace() const;
  /// `n` floats at the start of the workspace, valid until the next operation is launched.
  float* scratch(std::size_t n) const;

  cuda::MatrixProduct& products();
  cuda::SkinnyGemm& skinny_gemm();
  cuda::Fp8Product& fp8_products();
  /// Null where cuDNN may not be used.
  cuda::CudnnAttention* attention();
  /// Null where the deck demands another implementation.
  cuda::CausalAttention* causal_attention();
  cuda::SpanAttention* span_attention();
  /// Whether our own attention kernels may be used.
  bool own_attention() const { return own_attention_; }
  /// True if the deck demands cuDNN: a shape that it refuses is then an error, not a fallback.
  bool cudnn_required() const { return cudnn_required_; }

 private:
  Vector<char> workspace_;
  bool use_cudnn_ = false, cudnn_required_ = false, own_attention_ = true;
  std::unique_ptr<cuda::AlgorithmSearch> search_;
  std::unique_ptr<cuda::MatrixProduct> products_;  // made at first use, like the others
  std::unique_ptr<cuda::SkinnyGemm> skinny_gemm_;
  std::unique_ptr<cuda::Fp8Product> fp8_products_;
  std::unique_ptr<cuda::CudnnAttention> attention_;
  std::unique_ptr<cuda::CausalAttention> causal_attention_;
  std::unique_ptr<cuda::SpanAttention> span_attention_;
};

}  // namespace tern::ops
