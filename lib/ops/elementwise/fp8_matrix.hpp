/// Matrices in fp8 as products read them (fp8.hpp), and the choice of their scales.
#pragma once
#include "ops/core/operation.hpp"

namespace tern::ops {

/// (1): the largest |x| as the bits of a float, which order as the numbers do, with infinity and
/// NaN above all.
using Magnitude = Vector<std::uint32_t>;

template <class T>
struct LargestMagnitude {
  static constexpr Traits traits{.name = "tern::largest_magnitude",
                                 .native = std::is_same_v<T, bf16>};
  Matrix<const T> x;
  Magnitude magnitude;

  void check() const;
  double bytes() const { return bytes_of(x, magnitude); }
  static void portable(const Context&, const LargestMagnitude&);
  static bool native(const Context&, const LargestMagnitude&);
};

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

/// Bytes of a result, which is stored in fp8 instead of its own type if that is wanted.
template <class View>
double result_bytes(const View& values, const Fp8Matrix& rounded) {
  return rounded.wanted() ? bytes_of(rounded.straight) + bytes_of(rounded.transposed)
                          : bytes_of(values);
}

/// Rounds `values` (N, C), non-finite ones to NaN. N and C are multiples of 16.
template <class T>
struct Fp8Round {
  static constexpr Traits traits{.name = "tern::fp8_round", .native = std::is_same_v<T, bf16>};
  Matrix<const T> values;
  Fp8Matrix to;
  Scaling scaling;

  void check() const;
  double bytes() const { return bytes_of(values) + result_bytes(values, to); }
  static void portable(const Context&, const Fp8Round&);
  static bool native(const Context&, const Fp8Round&);
};

/// The numbers (N, C) of a matrix in fp8, from one of its layouts.
template <class T>
struct Fp8Numbers {
  static constexpr Traits traits{.name = "tern::fp8_numbers"};
  Fp8Matrix of;
  bool transposed;
  Matrix<T> to;

  void check() const;
  double bytes() const { return bytes_of(to) * (1 + 1.0 / sizeof(T)); }
  static void portable(const Context&, const Fp8Numbers&);
};

}  // namespace tern::ops
