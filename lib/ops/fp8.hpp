/// Linear maps in fp8: activations and weights in E4M3, output gradients in E5M2, sums in float
/// (Micikevicius et al. 2022, arXiv 2209.05433, section 3). Each operand has one scale, a power of
/// two from its current largest magnitude (current scaling); base/fp8.hpp. A non-finite value in an
/// operand makes the whole product NaN.
///
/// Unless N, I and O are multiples of 16, the map runs in T (linear.hpp). The portable definition
/// rounds operands to fp8 and multiplies them in T, which loses nothing: bf16 holds fp8 numbers.
/// The CUDA twin is cuBLASLt's fp8 product.
#pragma once
#include "ops/linear.hpp"
#include "ops/magnitude.hpp"

namespace tern::ops {

/// Workspace of quantised operands, shared by all maps of a model.
template <class T>
struct Fp8Workspace {
  Fp8Workspace() = default;  // none
  /// `elements`: the maximum of forward() and backward() over all maps.
  Fp8Workspace(Arena& arena, std::size_t elements);
  static std::size_t forward(std::size_t N, std::size_t I, std::size_t O) { return N * I + O * I; }
  static std::size_t backward(std::size_t N, std::size_t I, std::size_t O) {
    return N * O + (N > O ? N : O) * I;
  }

  Vector<T> operands;
  Vector<std::uint32_t> magnitudes;  // (3) of operands that come without their own
  Matrix<float> undo;  // (3, 4) reciprocal of each operand's scale, in column 0, since cuBLASLt
                       // needs pointers aligned to 16 bytes
};

/// Operand of an fp8 product. Its largest magnitude is found by the product, and stored if there is
/// room for it, unless it is known.
template <class T>
struct Fp8Input {
  template <class Values>
  Fp8Input(const Values& values_, Magnitude magnitude_ = {}, bool known_ = false)  // NOLINT
      : values(values_), magnitude(magnitude_), known(known_) {}
  Matrix<const T> values;
  Magnitude magnitude;  // or empty
  bool known;
};

/// Whether this device can; with the CUDA libraries: compute capability 8.9 and above.
bool fp8_available(const Context&);
/// Whether maps of these sizes, rows, inputs and outputs, are multiplied in fp8.
constexpr bool fp8_takes(std::size_t N, std::size_t I, std::size_t O) {
  return N % 16 == 0 && I % 16 == 0 && O % 16 == 0;
}

/// As linear_forward: y (N, O) = x (N, I) w (O, I)^T + bias (O), or added.
template <class T>
void fp8_linear_forward(const Context&, const Fp8Workspace<T>&, const Fp8Input<T>& x,
                        Matrix<const T> w, Vector<const T> bias, Matrix<T> y,
                        Write = Write::overwrite);
template <class T>
struct Fp8LinearBackward {
  const Fp8Workspace<T>& work;
  Fp8Input<T> dy;                    // (N, O)
  Fp8Input<T> x;                     // (N, I)
  Matrix<const T> w;                 // (O, I)
  Matrix<T> dx;                      // (N, I), may be x
  Matrix<Accumulate<T>> dw;          // (O, I), added to
  Vector<Accumulate<T>> dbias = {};  // (O), added to in full precision; or empty
};
/// As linear_backward_weight, then linear_backward_input.
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
