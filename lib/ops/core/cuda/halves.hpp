/// Pairs of 16-bit numbers in a word, the first one in its lower half, and from E4M3. T: bf16 or fp16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/types.hpp"

namespace tern::ops::cuda {

template <class T>
__device__ float2 expand_pair(std::uint32_t word) {
  static_assert(is_half<T>);
  if constexpr (std::is_same_v<T, fp16>)
    return __half22float2(reinterpret_cast<const __half2&>(word));
  else
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

template <class T>
__device__ std::uint32_t round_pair(float low, float high) {
  static_assert(is_half<T>);
  if constexpr (std::is_same_v<T, fp16>) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
}

/// Products of two pairs, rounded.
template <class T>
__device__ std::uint32_t times(std::uint32_t x, std::uint32_t y) {
  static_assert(is_half<T>);
  using Pair = std::conditional_t<std::is_same_v<T, fp16>, __half2, __nv_bfloat162>;
  const Pair product = __hmul2(reinterpret_cast<const Pair&>(x), reinterpret_cast<const Pair&>(y));
  return reinterpret_cast<const std::uint32_t&>(product);
}

/// Four codes of E4M3, from the lowest byte, as the pairs of the first and third and of the second
/// and fourth: each number over 2^120, in fp16 over 2^8. A code's bits within those of T are that,
/// subnormals included.
template <class T>
__device__ inline void spread_codes(std::uint32_t codes, std::uint32_t& low, std::uint32_t& high) {
  constexpr bool half = std::is_same_v<T, fp16>;
  constexpr std::uint32_t signs = 0x80008000u, numbers = half ? 0x3f803f80u : 0x07f007f0u;
  constexpr int down = half ? 1 : 4;  // from the upper byte of a pair's numbers
  low = (codes << 8 & signs) | (codes << (8 - down) & numbers);
  high = (codes & signs) | (codes >> down & numbers);
}
/// The same, the numbers themselves.
template <class T>
__device__ inline void expand_codes(std::uint32_t codes, std::uint32_t& low, std::uint32_t& high) {
  constexpr std::uint32_t factor =
      std::is_same_v<T, fp16> ? 0x5c005c00u : 0x7b807b80u;  // 2^8, 2^120, twice
  spread_codes<T>(codes, low, high);
  low = times<T>(low, factor), high = times<T>(high, factor);
}

/// Sum of the products of two pairs.
template <class T>
__device__ float dot_pair(std::uint32_t x, std::uint32_t y) {
  const float2 a = expand_pair<T>(x), b = expand_pair<T>(y);
  return fmaf(a.y, b.y, a.x * b.x);
}

}  // namespace tern::ops::cuda
