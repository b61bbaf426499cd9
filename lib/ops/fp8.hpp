/// Linear maps multiplied in 8-bit floats: activations and weights in E4M3, gradients of outputs in
/// E5M2, sums in float (Micikevicius et al. 2022, arXiv 2209.05433, section 3). Each operand is
/// scaled as a whole, by a power of two from its largest magnitude at the time (current scaling);
/// base/fp8.hpp. If an operand holds anything that is not finite, the whole product is NaN.
///
/// The map is multiplied in T instead, by the operations of linear.hpp, unless N, I and O are all
/// multiples of 16. The portable definition rounds the operands to the 8-bit numbers and multiplies
/// those in T, which loses nothing: bf16 holds them. The CUDA twin is cuBLASLt's 8-bit product.
#pragma once
#include "ops/linear.hpp"

namespace tern::ops {

/// What the operations below write their operands to; one serves all maps of a model.
template <class T>
struct Fp8Workspace {
  Fp8Workspace() = default;  // none
  /// For maps that need up to `elements`, the largest of `forward` or `backward`.
  Fp8Workspace(Arena& arena, std::size_t elements);
  static std::size_t forward(std::size_t N, std::size_t I, std::size_t O) { return N * I + O * I; }
  static std::size_t backward(std::size_t N, std::size_t I, std::size_t O) {
    return N * O + (N > O ? N : O) * I;
  }

  Vector<T> operands;
  Vector<std::uint32_t> magnitudes;  // (3) the largest of each operand, as float's bits
  Matrix<float> undo;  // (3, 4) what a product is multiplied by for each operand's scale: column 0,
                       // since cuBLASLt asks for pointers of 16 bytes
};

/// Whether this machine can: with CUDA's libraries, compute capability 8.9 and above.
bool fp8_available(const Context&);

/// As linear_forward: y (N, O) = x (N, I) w (O, I)^T + bias (O), or added.
template <class T>
void fp8_linear_forward(const Context&, const Fp8Workspace<T>&, Matrix<const T> x,
                        Matrix<const T> w, Vector<const T> bias, Matrix<T> y,
                        Write = Write::overwrite);
template <class T>
struct Fp8LinearBackward {
  const Fp8Workspace<T>& work;
  Matrix<const T> dy;                // (N, O)
  Matrix<const T> x;                 // (N, I)
  Matrix<const T> w;                 // (O, I)
  Matrix<T> dx;                      // (N, I), may be x
  Matrix<Accumulate<T>> dw;          // (O, I), added to
  Vector<Accumulate<T>> dbias = {};  // (O), added to in full precision; or empty
};
/// As linear_backward_weight and then linear_backward_input.
template <class T>
void fp8_linear_backward(const Context&, const Fp8LinearBackward<T>&);

Twin<&fp8_linear_forward<bf16>> native_fp8_linear_forward;
template <>
inline constexpr auto twin<&fp8_linear_forward<bf16>> = in_cuda("tern::fp8_linear_forward",
                                                                native_fp8_linear_forward);
Twin<&fp8_linear_backward<bf16>> native_fp8_linear_backward;
template <>
inline constexpr auto twin<&fp8_linear_backward<bf16>> = in_cuda("tern::fp8_linear_backward",
                                                                 native_fp8_linear_backward);

}  // namespace tern::ops
