/// fp8 matrix products through cuBLASLt: float sums, bf16 or float results.
#pragma once
#include <cublasLt.h>

#include <map>
#include <optional>

#include "base/types.hpp"
#include "ops/linear/cuda/detail/algorithm_search.hpp"

namespace tern::ops::cuda {

/// Row-major matrix of E4M3 or E5M2 numbers (CUDA_R_8F_*), scaled by the device scalar `undo`, or
/// each row by its element.
struct Fp8Operand {
  const std::uint8_t* data;
  std::size_t rows, columns;
  cudaDataType type;
  const float* undo;
  bool per_row = false;
};

class Fp8Product {
 public:
  explicit Fp8Product(AlgorithmSearch& search);
  ~Fp8Product();
  Fp8Product(const Fp8Product&) = delete;
  Fp8Product& operator=(const Fp8Product&) = delete;

  /// Whether the current device multiplies 8-bit floats.
  static bool served_by_device();

  struct Work {
    cudaStream_t stream;
    void* workspace;
    std::size_t workspace_bytes;
  };
  /// Sums only within the tensor cores (about 14 bits on Hopper: DeepSeek-V3, section 3.3.2), or
  /// periodically promoted to float.
  enum class Sums { fast, promoted };

  /// c (a.rows, b.rows) = a b^T + added (shaped as c, may be c, or null) + bias (b.rows, or null),
  /// the only layout of Hopper's fp8 products. All sizes are multiples of 16; all pointers, scales included, of 16 bytes.
  void multiply(const Work&, const Fp8Operand& a, const Fp8Operand& b, Sums, bf16* c,
                const bf16* added, const bf16* bias = nullptr);
  void multiply(const Work&, const Fp8Operand& a, const Fp8Operand& b, Sums, float* c,
                float beta);  // + beta c
  /// The first multiply(), for operands with a scale per row and any number of a's rows. False if
  /// cuBLASLt has no such product: then nothing is done.
  bool multiply_rows(const Work&, const Fp8Operand& a, const Fp8Operand& b, bf16* c,
                     const bf16* added);

 private:
  struct Key {
    std::size_t m, n, k;
    int a, b, c, fast, beta, bias, per_row;
    auto operator<=>(const Key&) const = default;
  };
  /// Not served: without an algorithm.
  struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    std::optional<cublasLtMatmulAlgo_t> algorithm;
  };
  bool run(const Work&, const Fp8Operand& a, const Fp8Operand& b, Sums, void* c, cudaDataType type,
           float beta, const void* added, const bf16* bias);
  Plan make_plan(const Work&, const Key&, float beta, const Fp8Operand& a, const Fp8Operand& b);

  AlgorithmSearch& search_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace tern::ops::cuda
