/// Storage types of parameters and activations. Storage types only load and store; arithmetic is in
/// Accumulate<T>.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
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

/// Type of master weights, gradients, optimizer states and sums: float, or double if storage is
/// double (tests only).
template <class T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<std::remove_const_t<T>, bf16>)
    return "bf16";
  else if constexpr (std::is_same_v<std::remove_const_t<T>, double>)
    return "fp64";
  else
    return "fp32";
}

}  // namespace tern
