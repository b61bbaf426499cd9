/// Pairs of 16-bit numbers in a word, the first one in its lower half. T: bf16 or fp16.
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

/// Sum of the products of two pairs.
template <class T>
__device__ float dot_pair(std::uint32_t x, std::uint32_t y) {
  const float2 a = expand_pair<T>(x), b = expand_pair<T>(y);
  return fmaf(a.y, b.y, a.x * b.x);
}

}  // namespace tern::ops::cuda
