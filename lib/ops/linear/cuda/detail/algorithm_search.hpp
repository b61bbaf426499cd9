/// The fastest of cuBLASLt's proposals for a product, timed once per shape and device.
///
/// Choices are kept in products.txt of the cache folder (TERN_CACHE, ~/.cache/tern), one line per
/// product, so that all later runs compute the same bits. Of several lines for a product, written
/// by ranks that searched together, all take the first. A line chooses among the proposals that
/// cuBLASLt makes for this product and workspace: one that names anything else is not used.
#pragma once
#include <cublasLt.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tern::ops::cuda {

class AlgorithmSearch {
 public:
  /// `searches`: false: the first proposal always, a function of shape and alignment only.
  explicit AlgorithmSearch(bool searches) : searches_(searches) {}

  /// c = op(a) op(b) + beta c, as cublasLtMatmul sees it.
  struct Product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    std::size_t bytes_a, bytes_b, bytes_c;
    float beta;
    std::size_t scales = 0;  // of operands of one byte: floats per operand
    bool searched;           // else the first proposal is taken: should_autotune.hpp
    void* workspace;
    std::size_t workspace_bytes;
    cudaStream_t stream;
  };
  /// `key`: all that the choice depends on, but for device and library. Empty if cuBLASLt proposes
  /// nothing. The first proposal, if the choice could not be kept.
  std::optional<cublasLtMatmulAlgo_t> choose(const std::string& key, const Product&);

 private:
  using Algorithms = std::vector<cublasLtMatmulAlgo_t>;
  static Algorithms proposals(const Product&, int most);
  std::optional<std::size_t> fastest(const Product&, const Algorithms&) const;
  /// The first of the lines of `key` that is one of the proposals.
  std::optional<cublasLtMatmulAlgo_t> kept(const std::string& key, const Algorithms&) const;
  void read();

  bool searches_;
  std::filesystem::path file_;              // empty until the first search
  std::string device_;                      // and library: first part of each line
  std::map<std::string, Algorithms> kept_;  // by line without the choice
};

}  // namespace tern::ops::cuda
