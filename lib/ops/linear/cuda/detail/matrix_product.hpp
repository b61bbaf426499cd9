/// Matrix products through cuBLASLt: operands in bf16 or fp16, float sums, results in the operands'
/// type or float.
#pragma once
#include <cublasLt.h>

#include <map>

#include "base/types.hpp"
#include "ops/linear/cuda/detail/algorithm_search.hpp"

namespace tern::ops::cuda {

/// Row-major operand, multiplied as its transpose if `transposed`.
struct Operand {
  const void* data;
  std::size_t rows, columns;  // as stored
  cudaDataType type;          // CUDA_R_16BF or CUDA_R_16F, the same for both operands
  bool transposed = false;
};

/// Work on a product's sums before they are rounded.
struct Epilogue {
  enum class Gelu { none, forward, backward };
  const void* bias = nullptr;  // one number per column, added first; not with Gelu::backward
  Gelu gelu = Gelu::none;
  /// Shaped as the result, another matrix: GELU's input, which forward writes, and whose slopes
  /// multiply the sums in backward.
  void* input = nullptr;
};

class MatrixProduct {
 public:
  explicit MatrixProduct(AlgorithmSearch& search);
  ~MatrixProduct();
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;

  struct Work {
    cudaStream_t stream;
    void* workspace;
    std::size_t workspace_bytes;
  };
  /// c (row-major, rows of op(a) x columns of op(b)) = op(a) op(b) + added (shaped as c, may be c,
  /// or null), with the epilogue. False if cuBLASLt has no algorithm; then nothing was done. All in
  /// the operands' type.
  bool multiply(const Work&, const Operand& a, const Operand& b, void* c, const void* added,
                const Epilogue& epilogue = {});
  /// c = op(a) op(b) + beta c.
  bool multiply(const Work&, const Operand& a, const Operand& b, float* c, float beta);

  /// Batch of equal shapes with contiguous operands: c = alpha op(a) op(b) + beta added for each,
  /// `added` shaped as c and not read if beta is 0. Otherwise as above.
  struct Batch {
    std::size_t count;
    float alpha, beta;
    const void* added;
  };
  bool multiply(const Work&, const Batch&, const Operand& a, const Operand& b, void* c);

 private:
  struct Key {
    std::size_t m, n, k, count;
    int transposed, operands, type, beta, epilogue, alignment;
    auto operator<=>(const Key&) const = default;
  };
  struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm;
    bool usable = false;
  };
  /// c = alpha op(a) op(b) + beta added, with the epilogue, `count` times.
  struct Task {
    Operand a, b;
    void* c;
    cudaDataType type;  // type of c and added
    float beta;
    const void* added;
    Epilogue epilogue = {};
    float alpha = 1;
    std::size_t count = 1;
  };
  bool run(const Work&, const Task&);
  Plan make_plan(const Work&, const Key&, const Task&);

  AlgorithmSearch& search_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace tern::ops::cuda
