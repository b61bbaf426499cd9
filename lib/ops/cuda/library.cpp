#include "ops/cuda/library.hpp"

#include <string_view>

#include "base/error.hpp"
#include "ops/cuda/detail/algorithm_search.hpp"
#include "ops/cuda/detail/causal_attention.hpp"
#include "ops/cuda/detail/cudnn_attention.hpp"
#include "ops/cuda/detail/fp8_product.hpp"
#include "ops/cuda/detail/matrix_product.hpp"
#include "ops/cuda/detail/skinny_gemm.hpp"
#include "ops/cuda/detail/span_attention.hpp"

namespace tern::ops {
using namespace cuda;

NativeLibrary::NativeLibrary(Arena& arena, const char* attention, Products products)
    : workspace_(arena.vector<char>("library workspace", Term::workspace,
                                    workspace_bytes + Arena::alignment)),
      search_(std::make_unique<AlgorithmSearch>(products == Products::fastest)) {
  const std::string_view choice = attention;
  cudnn_required_ = choice == "cudnn";
  if (cudnn_required_ && !CudnnAttention::built())
    user_error(
        "&model attention = 'cudnn', but this program was built without cuDNN's frontend; set "
        "attention = 'auto' or 'portable', or configure with -DCUDNN_FRONTEND_INCLUDE=<folder of "
        "cudnn_frontend.h>");
  own_attention_ = choice != "portable";
  use_cudnn_ = own_attention_ && CudnnAttention::built();
}

NativeLibrary::~NativeLibrary() = default;

// The arena's requests are aligned to 256 bytes within its block; the block itself need not be.
void* NativeLibrary::workspace() const {
  return reinterpret_cast<void*>(aligned(reinterpret_cast<std::size_t>(workspace_.data())));
}

float* NativeLibrary::scratch(std::size_t n) const {
  TERN_REQUIRE(n * sizeof(float) <= workspace_bytes, "{} numbers", n);
  TERN_REQUIRE(workspace(), "a measuring arena has no workspace");
  return reinterpret_cast<float*>(workspace());
}

MatrixProduct& NativeLibrary::products() {
  if (!products_) products_ = std::make_unique<MatrixProduct>(*search_);
  return *products_;
}

SkinnyGemm& NativeLibrary::skinny_gemm() {
  if (!skinny_gemm_) skinny_gemm_ = std::make_unique<SkinnyGemm>();
  return *skinny_gemm_;
}

Fp8Product& NativeLibrary::fp8_products() {
  if (!fp8_products_) fp8_products_ = std::make_unique<Fp8Product>(*search_);
  return *fp8_products_;
}

CudnnAttention* NativeLibrary::attention() {
  if (use_cudnn_ && !attention_) attention_ = std::make_unique<CudnnAttention>();
  return attention_.get();
}

CausalAttention* NativeLibrary::causal_attention() {
  if (!own_attention_ || cudnn_required_) return nullptr;
  if (!causal_attention_) causal_attention_ = std::make_unique<CausalAttention>();
  return causal_attention_.get();
}

SpanAttention* NativeLibrary::span_attention() {
  if (!own_attention_ || cudnn_required_) return nullptr;
  if (!span_attention_) span_attention_ = std::make_unique<SpanAttention>();
  return span_attention_.get();
}

}  // namespace tern::ops
