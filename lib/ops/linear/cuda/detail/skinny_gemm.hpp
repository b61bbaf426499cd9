/// Skinny GEMM with weights, as in decoding, on sm_90a: skinny_gemm_kernel.hpp.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <optional>

#include "ops/linear/fp8_weight.hpp"

namespace tern::ops::cuda {
namespace skinny {
enum class Codes;
}

/// y (N, O) = x (N, I) w (O, I)^T in float, rounded once, T being bf16 or fp16.
template <class T>
struct SkinnyProduct {
  Matrix<const T> x, w;
  Fp8Rows coded_x = {}, coded_w = {};  // their numbers in E4M3, or none; x's only with w's
  Matrix<T> y;
  bool added = false;  // to y
  /// No work in flight on the stream writes w, so it may be read before that work ends.
  bool early = false;
  /// y is the activation of the sums, with swiglu (N, O / 2).
  std::optional<Activation> activation = {};
};

class SkinnyGemm {
 public:
  static constexpr std::size_t max_rows = 128;
  static_assert(fp8_weight_rows == max_rows);

  /// False if the shape, the addresses or the device are not served; then nothing was done. Where
  /// weights in T and in E4M3 divide the work alike, both give the same bits for x in T.
  template <class T>
  bool multiply(cudaStream_t stream, const SkinnyProduct<T>& product);

 private:
  template <skinny::Codes codes, class T, class X, class W>
  bool launch(cudaStream_t stream, const SkinnyProduct<T>& product, Matrix<const X> x,
              Matrix<const W> w);
  struct Key {
    const void* data;
    std::size_t rows, columns;
    int tile_rows, tile_columns;
    auto operator<=>(const Key&) const = default;
  };
  template <class T>
  const CUtensorMap& map_of(Matrix<const T> m, int tile_rows, int tile_columns);

  std::map<Key, CUtensorMap> maps_;
};

}  // namespace tern::ops::cuda
