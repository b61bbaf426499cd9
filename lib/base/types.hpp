/// Storage types of parameters and activations. Storage types only load and store; arithmetic is in
/// Accumulate<T>.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__device__)  // by compilers of device code
#define TERN_FUNCTION __host__ __device__ inline
#else
#define TERN_FUNCTION inline
#endif

namespace tern {

/// bfloat16: upper half of a float32 (8 exponent bits, 7 mantissa bits), rounded to nearest even.
/// Two bytes on every backend, unlike Kokkos::bhalf_t on the host. Bit-compatible with CUDA's.
struct alignas(2) bf16 {
  std::uint16_t bits;

  bf16() = default;
  TERN_FUNCTION bf16(float value)
      : bits(round(value)) {}             // NOLINT: implicit as float <-> double is
  TERN_FUNCTION operator float() const {  // NOLINT
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
  }

 private:
  TERN_FUNCTION static std::uint16_t round(float value) {
    std::uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    if ((wide & 0x7fffffffu) > 0x7f800000u)
      return static_cast<std::uint16_t>((wide >> 16) | 0x40u);  // NaN
    return static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
  }
};
static_assert(sizeof(bf16) == 2);

/// IEEE 754 binary16 (5 exponent bits, 10 mantissa bits), rounded to nearest even; magnitudes from
/// 65520 on become infinite. Bit-compatible with CUDA's __half.
struct alignas(2) fp16 {
  std::uint16_t bits;

  fp16() = default;
  TERN_FUNCTION fp16(float value)
      : bits(round(value)) {}             // NOLINT: implicit as float <-> double is
  TERN_FUNCTION operator float() const {  // NOLINT
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    // Selects instead of branches: loops over arrays are vectorized.
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
    const float subnormal = float_of(magnitude + (113u << 23)) - float_of(113u << 23);
    std::uint32_t wide = magnitude + (112u << 23);
    wide = magnitude >= (31u << 23) ? magnitude | 0x7f800000u : wide;  // infinite or NaN
    wide = magnitude < (1u << 23) ? bits_of(subnormal) : wide;
    return float_of(wide | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
#endif
  }

 private:
  TERN_FUNCTION static float float_of(std::uint32_t wide) {
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
  TERN_FUNCTION static std::uint32_t bits_of(float value) {
    std::uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    return wide;
  }
  TERN_FUNCTION static std::uint16_t round(float value) {
#if defined(__CUDA_ARCH__)
    std::uint16_t rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
#else
    const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
    // Below 2^-14 the sum with 0.5 rounds to multiples of 2^-24, the least subnormal.
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    std::uint32_t narrow = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    narrow = magnitude < (113u << 23) ? subnormal : narrow;
    narrow = magnitude >= (143u << 23) ? 0x7c00u : narrow;
    narrow = magnitude > 0x7f800000u ? 0x7e00u : narrow;  // NaN
    return static_cast<std::uint16_t>(narrow | (bits_of(value) >> 16 & 0x8000u));
#endif
  }
};
static_assert(sizeof(fp16) == 2);

/// Types of 16 bits, whose arithmetic is in float.
template <class T>
inline constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, fp16>;

/// Type of master weights, gradients, optimizer states and sums: float, or double if storage is
/// double (tests only).
template <class T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<std::remove_const_t<T>, bf16>)
    return "bf16";
  else if constexpr (std::is_same_v<std::remove_const_t<T>, fp16>)
    return "fp16";
  else if constexpr (std::is_same_v<std::remove_const_t<T>, double>)
    return "fp64";
  else
    return "fp32";
}

}  // namespace tern
