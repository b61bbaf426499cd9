/// Matrices in fp8 as products read them (fp8.hpp), and the choice of their scales.
#pragma once
#include "ops/core/native.hpp"

namespace tern::ops {

/// (1): the largest |x| as the bits of a float, which order as the numbers do, with infinity and
/// NaN above all.
using Magnitude = Vector<std::uint32_t>;

template <class T>
void largest_magnitude(const Context&, Matrix<const T> x, Magnitude magnitude);

/// A power of two, from a largest magnitude.
struct Fp8Scale {
  Fp8Scale() = default;  // none
  Fp8Scale(Arena& arena, const std::string& label, Term term);

  Vector<float> undo;  // (4): the scale's reciprocal in element 0, aligned to 16 bytes for cuBLASLt
  Magnitude magnitude;  // (1)
  /// (1): raised by the count of numbers that saturate under Scaling::earlier; or empty.
  Vector<std::uint32_t> saturated = {};
};

enum class Fp8Format { e4m3, e5m2 };  // base/fp8.hpp

/// A matrix (N, C) in fp8, both ways. An operation that may end in one takes it next to its result
/// in T, which then holds nothing that is needed afterwards, unless `values_too`. Under
/// Scaling::earlier such an operation need not write its result in T first, nor round to T.
struct Fp8Matrix {
  Fp8Format format = Fp8Format::e4m3;
  Matrix<std::uint8_t> straight;    // (N, C), or empty
  Matrix<std::uint8_t> transposed;  // (C, N), or empty
  Fp8Scale scale;
  bool values_too = false;

  bool wanted() const { return scale.undo.size() > 0; }
};

// For profiles: of a result, which is stored in fp8 instead of its own type if that is wanted.
template <class View>
double result_bytes(const View& values, const Fp8Matrix& rounded) {
  return rounded.wanted() ? bytes_of(rounded.straight) + bytes_of(rounded.transposed)
                          : bytes_of(values);
}

/// Rounds `values` (N, C), non-finite ones to NaN. N and C are multiples of 16.
template <class T>
void fp8_round(const Context&, Matrix<const T> values, const Fp8Matrix& to, Scaling);

/// The numbers (N, C) of a matrix in fp8, from one of its layouts.
template <class T>
void fp8_numbers(const Context&, const Fp8Matrix& of, bool transposed, Matrix<T> to);

NativeKernel<&largest_magnitude<bf16>> native_largest_magnitude;
template <>
inline constexpr auto native_kernel<&largest_magnitude<bf16>> =
    native_entry("tern::largest_magnitude", native_largest_magnitude);
NativeKernel<&fp8_round<bf16>> native_fp8_round;
template <>
inline constexpr auto native_kernel<&fp8_round<bf16>> = native_entry("tern::fp8_round",
                                                                     native_fp8_round);
template <>
struct Traffic<&fp8_round<bf16>> {
  double operator()(const auto& values, const Fp8Matrix& to, Scaling) const {
    return bytes_of(values) + result_bytes(values, to);
  }
};

}  // namespace tern::ops
