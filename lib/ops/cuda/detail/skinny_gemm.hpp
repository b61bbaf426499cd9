/// Skinny GEMM with weights, as in decoding, on sm_90a: skinny_gemm_kernel.hpp.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <map>

#include "ops/fp8_weight.hpp"

namespace tern::ops::cuda {

class SkinnyGemm {
 public:
  static constexpr std::size_t max_rows = 128;
  static_assert(fp8_weight_rows == max_rows);

  /// y (N, O) = x (N, I) w (O, I)^T in float, rounded once, T being bf16 or fp16; with `added`, + y. `early`: no work in
  /// flight on the stream writes w, so it may be read before that work ends. False if the shape,
  /// the addresses or the device are not served; then nothing was done.
  template <class T>
  bool multiply(cudaStream_t stream, Matrix<const T> x, Matrix<const T> w, Matrix<T> y, bool added,
                bool early);
  /// The same with weights in E4M3. Where both divide the work alike, bit for bit as their numbers
  /// in T.
  template <class T>
  bool multiply(cudaStream_t stream, Matrix<const T> x, const Fp8Weight& w, Matrix<T> y, bool added,
                bool early);

 private:
  template <class T, class W>
  bool launch(cudaStream_t stream, Matrix<const T> x, Matrix<const W> w, const float* undo,
              Matrix<T> y, bool added, bool early);
  struct Key {
    const void* data;
    std::size_t rows, columns;
    int tile_rows;
    auto operator<=>(const Key&) const = default;
  };
  template <class T>
  const CUtensorMap& map_of(Matrix<const T> m, int tile_rows);

  std::map<Key, CUtensorMap> maps_;
};

}  // namespace tern::ops::cuda
