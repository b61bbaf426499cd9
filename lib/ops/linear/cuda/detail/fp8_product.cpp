#include "ops/linear/cuda/detail/fp8_product.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "ops/linear/cuda/detail/cublaslt.hpp"
#include "ops/linear/cuda/detail/should_autotune.hpp"

namespace tern::ops::cuda {
namespace {

constexpr std::uint32_t min_alignment = 16;

using detail::check;
using detail::set;

void require(bool served, const Fp8Operand& a, const Fp8Operand& b) {
  TERN_REQUIRE(served, "cuBLASLt has no fp8 GEMM for ({}, {}) x ({}, {})^T", a.rows, a.columns,
               b.rows, b.columns);
}

/// Column-major, b comes first: Fp8Product::make_plan.
void set_scales(cublasLtMatmulDesc_t operation, const Fp8Operand& a, const Fp8Operand& b) {
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b.undo);
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a.undo);
}

/// Layout of a row-major matrix, which cuBLASLt sees as its transpose.
cublasLtMatrixLayout_t layout(cudaDataType type, std::size_t rows, std::size_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, columns, rows, static_cast<std::int64_t>(columns)),
        "cublasLtMatrixLayoutCreate");
  return made;
}

}  // namespace

bool Fp8Product::served_by_device() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         10 * major + minor >= 89;
}

Fp8Product::Fp8Product(AlgorithmSearch& search) : search_(search) {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

Fp8Product::~Fp8Product() {
  for (auto& [key, plan] : plans_) {
    cublasLtMatrixLayoutDestroy(plan.a);
    cublasLtMatrixLayoutDestroy(plan.b);
    cublasLtMatrixLayoutDestroy(plan.c);
    cublasLtMatmulDescDestroy(plan.operation);
  }
  cublasLtDestroy(handle_);
}

void Fp8Product::multiply(const Work& work, const Fp8Operand& a, const Fp8Operand& b, Sums sums,
                          bf16* c, const bf16* added, const bf16* bias) {
  require(run(work, a, b, sums, c, CUDA_R_16BF, added ? 1.0f : 0.0f, added ? added : c, bias), a,
          b);
}

void Fp8Product::multiply(const Work& work, const Fp8Operand& a, const Fp8Operand& b, Sums sums,
                          float* c, float beta) {
  require(run(work, a, b, sums, c, CUDA_R_32F, beta, c, nullptr), a, b);
}

bool Fp8Product::multiply_rows(const Work& work, const Fp8Operand& a, const Fp8Operand& b, bf16* c,
                               const bf16* added) {
  return run(work, a, b, Sums::fast, c, CUDA_R_16BF, added ? 1.0f : 0.0f, added ? added : c,
             nullptr);
}

// Column-major, as cuBLASLt sees it: c^T = (b^T)^T a^T, so b comes first and is transposed.
Fp8Product::Plan Fp8Product::make_plan(const Work& work, const Key& key, float beta,
                                       const Fp8Operand& a, const Fp8Operand& b) {
  Plan plan;
  check(cublasLtMatmulDescCreate(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(plan.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(key.fast));
  if (key.per_row)
    for (const auto which : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
      set(plan.operation, which, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  set_scales(plan.operation, a, b);  // without them no algorithm is proposed
  if (key.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  plan.a = layout(static_cast<cudaDataType>(key.b), key.n, key.k);
  plan.b = layout(static_cast<cudaDataType>(key.a), key.m, key.k);
  plan.c = layout(static_cast<cudaDataType>(key.c), key.m, key.n);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, work.workspace_bytes);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(which, min_alignment);
  plan.algorithm = search_.choose(
      fmt::format("fp8 {} x {} x {}, {}{}", key.m, key.n, key.k,
                  fmt::join(std::array{key.a, key.b, key.c, key.fast, key.beta, key.bias}, " "),
                  key.per_row ? ", per row" : ""),
      {.handle = handle_,
       .operation = plan.operation,
       .a = plan.a,
       .b = plan.b,
       .c = plan.c,
       .preference = preference,
       .bytes_a = key.n * key.k,
       .bytes_b = key.m * key.k,
       .bytes_c = key.m * key.n * (key.c == CUDA_R_32F ? sizeof(float) : sizeof(bf16)),
       .beta = beta,
       .scales = key.per_row ? std::max(key.m, key.n) : 1,
       .searched = !key.bias && should_autotune(key.m, key.n, key.k),
       .workspace = work.workspace,
       .workspace_bytes = work.workspace_bytes,
       .stream = work.stream});
  cublasLtMatmulPreferenceDestroy(preference);
  return plan;
}

bool Fp8Product::run(const Work& work, const Fp8Operand& a, const Fp8Operand& b, Sums sums, void* c,
                     cudaDataType type, float beta, const void* added, const bf16* bias) {
  TERN_REQUIRE(a.columns == b.columns, "{} against {}", a.columns, b.columns);
  const Key key{a.rows,
                b.rows,
                a.columns,
                a.type,
                b.type,
                type,
                sums == Sums::fast,
                beta != 0,
                bias != nullptr,
                a.per_row && b.per_row};
  auto at = plans_.find(key);
  if (at == plans_.end()) at = plans_.emplace(key, make_plan(work, key, beta, a, b)).first;
  Plan& plan = at->second;
  if (!plan.algorithm) return false;
  set_scales(plan.operation, a, b);
  if (bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float alpha = 1;
  check(cublasLtMatmul(handle_, plan.operation, &alpha, b.data, plan.a, a.data, plan.b, &beta,
                       added, plan.c, c, plan.c, &*plan.algorithm, work.workspace,
                       work.workspace_bytes, work.stream),
        "cublasLtMatmul");
  return true;
}

}  // namespace tern::ops::cuda
