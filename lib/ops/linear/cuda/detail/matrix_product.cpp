#include "ops/linear/cuda/detail/matrix_product.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "ops/linear/cuda/detail/cublaslt.hpp"
#include "ops/linear/cuda/detail/should_autotune.hpp"

namespace tern::ops::cuda {
namespace {

using detail::check;
using detail::set;
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

template <class Value>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
         const Value& value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
        "cublasLtMatrixLayoutSetAttribute");
}

/// Part of a product's key: 0 for none.
int code_of(const Epilogue& e) { return 2 * static_cast<int>(e.gelu) + (e.bias ? 1 : 0); }

cublasLtEpilogue_t epilogue_of(const Epilogue& e) {
  switch (e.gelu) {
    case Epilogue::Gelu::forward:
      return e.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::Gelu::backward:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::Gelu::none:
      break;
  }
  return e.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// `columns`: of c.
void set(cublasLtMatmulDesc_t operation, const Epilogue& e, cudaDataType type,
         std::size_t columns) {
  if (e.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, e.bias);
  if (e.gelu == Epilogue::Gelu::none) return;
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, e.input);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<std::int64_t>(columns));
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type);
}

/// Largest power of two up to 256 that divides all addresses and strides.
int common_alignment(std::initializer_list<const void*> pointers,
                     std::initializer_list<std::size_t> distances) {
  std::uintptr_t bits = 256;
  for (const void* p : pointers) bits |= reinterpret_cast<std::uintptr_t>(p);
  for (const std::size_t bytes : distances) bits |= bytes;
  return static_cast<int>(bits & (~bits + 1));
}

}  // namespace

MatrixProduct::MatrixProduct(AlgorithmSearch& search) : search_(search) {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

MatrixProduct::~MatrixProduct() {
  for (auto& [key, plan] : plans_) {
    cublasLtMatrixLayoutDestroy(plan.a);
    cublasLtMatrixLayoutDestroy(plan.b);
    cublasLtMatrixLayoutDestroy(plan.c);
    cublasLtMatmulDescDestroy(plan.operation);
  }
  cublasLtDestroy(handle_);
}

bool MatrixProduct::multiply(const Work& work, const Operand& a, const Operand& b, void* c,
                             const void* added, const Epilogue& epilogue) {
  return run(work, {a, b, c, a.type, added ? 1.0f : 0.0f, added ? added : c, epilogue});
}

bool MatrixProduct::multiply(const Work& work, const Operand& a, const Operand& b, float* c,
                             float beta) {
  return run(work, {a, b, c, CUDA_R_32F, beta, c});
}

bool MatrixProduct::multiply(const Work& work, const Batch& batch, const Operand& a,
                             const Operand& b, void* c) {
  const void* added = batch.beta != 0 ? batch.added : c;
  return run(work, {a, b, c, a.type, batch.beta, added, {}, batch.alpha, batch.count});
}

// cuBLASLt is column-major: it sees every row-major matrix transposed, so it computes c^T = op(b)^T
// op(a)^T with b as its first operand.
MatrixProduct::Plan MatrixProduct::make_plan(const Work& work, const Key& key, const Task& task) {
  const Operand &a = task.a, &b = task.b;
  Plan plan;
  const auto type = static_cast<cudaDataType>(key.type);
  check(cublasLtMatmulDescCreate(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(task.epilogue));
  set(plan.operation, task.epilogue, type, key.m);
  const auto layout = [&](cublasLtMatrixLayout_t* to, cudaDataType t, std::size_t rows,
                          std::size_t columns) {
    check(cublasLtMatrixLayoutCreate(to, t, columns, rows, static_cast<std::int64_t>(columns)),
          "cublasLtMatrixLayoutCreate");
    if (key.count == 1) return;
    set(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(key.count));
    set(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        static_cast<std::int64_t>(rows * columns));
  };
  layout(&plan.a, b.type, b.rows, b.columns);
  layout(&plan.b, a.type, a.rows, a.columns);
  layout(&plan.c, type, key.n, key.m);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, work.workspace_bytes);
  const auto alignment = static_cast<std::uint32_t>(key.alignment);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, which, alignment);
  const std::size_t c_bytes = type == CUDA_R_32F ? sizeof(float) : sizeof(bf16);
  const auto algorithm = search_.choose(
      fmt::format(
          "{} {} x {} x {} x {}, {}", a.type == CUDA_R_16F ? "fp16" : "bf16", key.m, key.n, key.k,
          key.count,
          fmt::join(std::array{key.transposed, key.type, key.beta, key.epilogue, key.alignment},
                    " ")),
      {.handle = handle_,
       .operation = plan.operation,
       .a = plan.a,
       .b = plan.b,
       .c = plan.c,
       .preference = preference,
       .bytes_a = b.rows * b.columns * key.count * sizeof(bf16),
       .bytes_b = a.rows * a.columns * key.count * sizeof(bf16),
       .bytes_c = key.m * key.n * key.count * c_bytes,
       .beta = task.beta,
       .searched = !task.epilogue.bias && should_autotune(key.m, key.n, key.k, key.count),
       .workspace = work.workspace,
       .workspace_bytes = work.workspace_bytes,
       .stream = work.stream});
  cublasLtMatmulPreferenceDestroy(preference);
  plan.usable = algorithm.has_value();
  if (algorithm) plan.algorithm = *algorithm;
  return plan;
}

bool MatrixProduct::run(const Work& work, const Task& task) {
  const auto& [a, b, c, type, beta, added, epilogue, alpha, count] = task;
  const std::size_t rows = a.transposed ? a.columns : a.rows;
  const std::size_t columns = b.transposed ? b.rows : b.columns;
  const std::size_t inner = a.transposed ? a.rows : a.columns;
  TERN_REQUIRE(a.type == b.type && inner == (b.transposed ? b.columns : b.rows), "{} against {}",
               inner, b.transposed ? b.columns : b.rows);
  const std::size_t apart = count > 1 ? sizeof(bf16) : 0;  // a single matrix has no stride
  const Key key{
      columns,
      rows,
      inner,
      count,
      2 * a.transposed + b.transposed,
      static_cast<int>(a.type),
      static_cast<int>(type),
      beta != 0,
      code_of(epilogue),
      common_alignment({a.data, b.data, c, added, epilogue.bias, epilogue.input},
                       {apart * rows * inner, apart * inner * columns, apart * rows * columns})};
  auto at = plans_.find(key);
  if (at == plans_.end()) at = plans_.emplace(key, make_plan(work, key, task)).first;
  Plan& plan = at->second;
  if (!plan.usable) return false;
  set(plan.operation, epilogue, type, key.m);
  check(cublasLtMatmul(handle_, plan.operation, &alpha, b.data, plan.a, a.data, plan.b, &beta,
                       added, plan.c, c, plan.c, &plan.algorithm, work.workspace,
                       work.workspace_bytes, work.stream),
        "cublasLtMatmul");
  return true;
}

}  // namespace tern::ops::cuda
