/// What linear maps keep in the library between calls: handles, plans, choices of algorithms.
#pragma once
#include "ops/core/cuda/library.hpp"
#include "ops/linear/cuda/detail/fp8_product.hpp"
#include "ops/linear/cuda/detail/matrix_product.hpp"
#include "ops/linear/cuda/detail/skinny_gemm.hpp"

namespace tern::ops::cuda {

inline AlgorithmSearch& algorithm_search(NativeLibrary& library) {
  return library.get<AlgorithmSearch>(library.products() == Products::fastest);
}
inline MatrixProduct& products(NativeLibrary& library) {
  return library.get<MatrixProduct>(algorithm_search(library));
}
inline Fp8Product& fp8_products(NativeLibrary& library) {
  return library.get<Fp8Product>(algorithm_search(library));
}
inline SkinnyGemm& skinny_gemm(NativeLibrary& library) { return library.get<SkinnyGemm>(); }

}  // namespace tern::ops::cuda
