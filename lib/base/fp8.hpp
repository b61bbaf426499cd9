/// FP8 formats of Micikevicius et al. 2022, "FP8 formats for deep learning" (table 1), and scale
/// factors for quantization.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/types.hpp"

namespace tern {

/// 4 exponent bits, 3 mantissa bits, no infinities (torch.float8_e4m3fn): activations, weights.
struct E4M3 {
  static constexpr std::uint32_t mantissa_bits = 3, min_exponent = 127 - 6;  // float32 bias
  static constexpr float largest = 448;                                      // 1.75 * 2^8
  static constexpr std::uint32_t largest_code = 0x7e;
};
/// 5 exponent bits, 2 mantissa bits (torch.float8_e5m2): gradients, whose range is wider.
struct E5M2 {
  static constexpr std::uint32_t mantissa_bits = 2, min_exponent = 127 - 14;
  static constexpr float largest = 57344;  // 1.75 * 2^15
  static constexpr std::uint32_t largest_code = 0x7b;
};

TERN_FUNCTION std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
TERN_FUNCTION float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounds to the nearest representable number, ties to even, saturating at the largest. NaN stays
/// NaN.
template <class Format>
TERN_FUNCTION float round_to(float value) {
  const std::uint32_t own = (float_bits(value) >> 23) & 0xffu;
  const std::uint32_t exponent = own > Format::min_exponent ? own : Format::min_exponent;
  const float step = float_of_bits((exponent - Format::mantissa_bits) << 23);
  const float steps = float_of_bits((254 + Format::mantissa_bits - exponent) << 23);  // 1 / step
  const float rounded = rintf(value * steps) * step;
  if (rounded > Format::largest) return Format::largest;
  return rounded < -Format::largest ? -Format::largest : rounded;
}

/// Code of a number of the format, a result of round_to. NaN becomes 0x7f, with its sign.
template <class Format>
TERN_FUNCTION std::uint8_t encode(float number) {
  constexpr std::uint32_t below = (Format::min_exponent - 1) << Format::mantissa_bits;
  const std::uint32_t bits = float_bits(number), magnitude = bits & 0x7fffffffu;
  std::uint32_t code = 0x7f;
  if (magnitude < Format::min_exponent << 23) {  // subnormal: a multiple of the smallest step
    const auto steps = (254 + Format::mantissa_bits - Format::min_exponent) << 23;
    code = static_cast<std::uint32_t>(float_of_bits(magnitude) * float_of_bits(steps));
  } else if (magnitude < 0x7f800000u) {
    code = (magnitude >> (23 - Format::mantissa_bits)) - below;
  }
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | code);
}

/// The number of a code; NaN for those that are not finite.
template <class Format>
TERN_FUNCTION float decode(std::uint8_t code) {
  constexpr std::uint32_t below = (Format::min_exponent - 1) << Format::mantissa_bits;
  const std::uint32_t sign = (code & 0x80u) << 24, own = code & 0x7fu;
  if (own > Format::largest_code) return float_of_bits(0x7fc00000u);
  if (own >> Format::mantissa_bits)
    return float_of_bits(sign | (own + below) << (23 - Format::mantissa_bits));
  const float step = float_of_bits((Format::min_exponent - Format::mantissa_bits) << 23);
  return float_of_bits(sign | float_bits(static_cast<float>(own) * step));
}

/// Largest power of two, at most 2^60, that scales `magnitude` to no more than the format's
/// largest. A power of two scales without rounding and is undone exactly; the bound keeps products
/// of two such factors in float's range. NaN if `magnitude` is not finite.
template <class Format>
TERN_FUNCTION float scale_for(float magnitude) {
  constexpr int bound = 60;
  const std::uint32_t bits = float_bits(magnitude), top = float_bits(Format::largest);
  if (bits >= 0x7f800000u) return float_of_bits(0x7fc00000u);
  const bool over = (bits & 0x7fffffu) > (top & 0x7fffffu);
  const int exponent = static_cast<int>(top >> 23) - static_cast<int>(bits >> 23) - over;
  return float_of_bits(static_cast<std::uint32_t>((exponent < bound ? exponent : bound) + 127)
                       << 23);
}

/// The same to E4M3 for numbers that are kept in T once they are scaled back: in fp16, whose smallest
/// step is 2^-24, E4M3's being 2^-9, at most 2^15.
template <class T>
TERN_FUNCTION float e4m3_scale_in(float magnitude) {
  const float scale = scale_for<E4M3>(magnitude);
  return std::is_same_v<T, fp16> && scale > 0x1p15f ? 0x1p15f : scale;
}

/// Exactly 1 / scale, for a result of scale_for.
TERN_FUNCTION float undo_scale(float scale) {
  if (scale != scale) return scale;
  return float_of_bits((254u << 23) - float_bits(scale));
}

}  // namespace tern
