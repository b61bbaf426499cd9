/// Linear maps in fp8: activations and weights in E4M3, output gradients in E5M2, sums in float
/// (Micikevicius et al. 2022, arXiv 2209.05433, section 3). Each operand has one scale, a power of
/// two; base/fp8.hpp. A non-finite value in an operand makes the whole product NaN.
///
/// N, I and O are multiples of 16. The portable version multiplies the fp8 numbers in T, which
/// loses nothing: bf16 holds them. The native kernel is cuBLASLt's fp8 product.
#pragma once
#include "ops/elementwise/fp8_matrix.hpp"
#include "ops/elementwise/fp8_rows.hpp"
#include "ops/linear/linear.hpp"

namespace tern::ops {

/// Whether this device can; with the CUDA libraries: compute capability 8.9 and above.
bool fp8_available(const Context&);
/// Whether maps of these sizes, rows, inputs and outputs, are multiplied in fp8.
constexpr bool fp8_takes(std::size_t N, std::size_t I, std::size_t O) {
  return N % 16 == 0 && I % 16 == 0 && O % 16 == 0;
}

/// Operand of a map: `rounded` where it is multiplied in fp8; `values` are then workspace, unless
/// rounded.values_too. In decoding `coded`: the same numbers as `values`.
template <class T>
struct MapOperand {
  Matrix<T> values;
  Fp8Matrix rounded = {};
  Fp8Rows coded = {};
};

/// Rounds an operand's values, which are written, if its map is in fp8.
template <class T>
void round_operand(const Context& context, const MapOperand<T>& operand, Scaling scaling) {
  if (operand.rounded.wanted())
    run(context, Fp8Round<T>{.values = operand.values, .to = operand.rounded, .scaling = scaling});
  if (operand.coded.wanted())
    run(context, Fp8RoundRows<T>{.x = operand.values, .to = operand.coded});
}

/// Workspace shared by all maps of a model.
template <class T>
class Fp8Workspace {
 public:
  /// Elements and bytes needed by the largest maps.
  struct Sizes {
    std::size_t values = 0, gradient = 0, input = 0, weights = 0;
    /// Raised to those of a map of N rows.
    void raise(std::size_t N, std::size_t I, std::size_t O, bool training);
  };

  Fp8Workspace() = default;  // none
  /// For products of matrices in fp8 only.
  explicit Fp8Workspace(Vector<T> values) : values_(values) {}
  Fp8Workspace(Arena& arena, const Sizes& sizes);

  const Vector<T>& values() const { return values_; }
  /// A map's input, both ways in the memory of `kept` (N, I).
  MapOperand<T> kept(Matrix<T> kept, const Fp8Scale& scale) const;
  // The following live until the next one of the kind.
  /// A map's input whose values are kept, one way.
  MapOperand<T> input(Matrix<T> values, const Fp8Scale& scale, bool transposed) const;
  MapOperand<T> gradient(Matrix<T> values, const Fp8Scale& scale, bool values_too) const;
  /// An input (N, I) whose values are kept, rounded, transposed.
  Fp8Matrix rounded_input(const Context&, Matrix<const T> x, const Fp8Scale& scale) const;
  /// Weights (O, I), rounded, one way.
  Fp8Matrix weights(const Context&, Matrix<const T> w, bool transposed) const;

 private:
  Vector<T> values_;
  Vector<std::uint8_t> gradient_, input_, weights_;
  Fp8Scale of_weights_;
};

/// As linear_forward: y (N, O) = added + x (N, I) w (O, I)^T + bias (O). Reads x and w straight.
template <class T>
struct Fp8LinearForward {
  static constexpr Traits traits{.name = "tern::fp8_linear_forward",
                                 .native = std::is_same_v<T, bf16>};
  Vector<T> workspace;
  Fp8Matrix x;
  Fp8Matrix w;
  Vector<const T> bias = {};
  Matrix<T> y;
  Matrix<const T> added = {};

  void check() const;
  double flops() const { return product_flops(y.size(), x.straight.extent(1)); }
  double bytes() const { return bytes_of(x.straight, w.straight, bias, y, added); }
  static void portable(const Context&, const Fp8LinearForward&);
  static bool native(const Context&, const Fp8LinearForward&);
};

/// As linear_backward_weight: dw (O, I) = or += dy (N, O)^T x (N, I). Reads both transposed.
template <class T>
struct Fp8LinearBackwardWeight {
  static constexpr Traits traits{.name = "tern::fp8_linear_backward_weight",
                                 .native = std::is_same_v<T, bf16>};
  Vector<T> workspace;
  Fp8Matrix dy;
  Fp8Matrix x;
  Matrix<Accumulate<T>> dw;
  Write write = Write::add;

  void check() const;
  double flops() const { return product_flops(dw.size(), dy.transposed.extent(1)); }
  double bytes() const { return bytes_of(dy.transposed, x.transposed, dw); }
  static void portable(const Context&, const Fp8LinearBackwardWeight&);
  static bool native(const Context&, const Fp8LinearBackwardWeight&);
};

/// As linear_backward_input: dx (N, I) = dy (N, O) w (O, I). Reads dy straight and w transposed.
template <class T>
struct Fp8LinearBackwardInput {
  static constexpr Traits traits{.name = "tern::fp8_linear_backward_input",
                                 .native = std::is_same_v<T, bf16>};
  Vector<T> workspace;
  Fp8Matrix dy;
  Fp8Matrix w;
  Matrix<T> dx;

  void check() const;
  double flops() const { return product_flops(dx.size(), dy.straight.extent(1)); }
  double bytes() const { return bytes_of(dy.straight, w.transposed, dx); }
  static void portable(const Context&, const Fp8LinearBackwardInput&);
  static bool native(const Context&, const Fp8LinearBackwardInput&);
};

}  // namespace tern::ops
