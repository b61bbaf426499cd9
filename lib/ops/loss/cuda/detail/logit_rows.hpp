/// Shared by the kernels over rows of logits: one block per row, sums of exponentials in base 2.
#pragma once
#include <math_constants.h>

#include "ops/core/cuda/kernels.hpp"

namespace tern::ops::cuda::detail {

constexpr int row_threads = 512;

/// Partial log-sum-exp in base 2: the largest number, and the sum of 2^(number - largest).
struct LogSumExp {
  float largest, sum;

  __device__ static LogSumExp empty() { return {-CUDART_INF_F, 0.0f}; }
  __device__ LogSumExp operator+(const LogSumExp& other) const {
    const float top = fmaxf(largest, other.largest);
    if (top == -CUDART_INF_F) return empty();
    return {top, sum * exp2f(largest - top) + other.sum * exp2f(other.largest - top)};
  }
  __device__ void add(const Pack& numbers) {
    float top = largest;
    for (float v : numbers.value) top = fmaxf(top, v);
    if (top == -CUDART_INF_F) return;
    sum *= exp2f(largest - top);
    largest = top;
    for (float v : numbers.value) sum += exp2f(v - top);
  }
};

/// On all threads of the block; a barrier.
__device__ inline LogSumExp block_sum(LogSumExp mine) {
  __shared__ LogSumExp of_warp[row_threads / warp_size];
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    mine = mine + LogSumExp{__shfl_xor_sync(0xffffffffu, mine.largest, offset),
                            __shfl_xor_sync(0xffffffffu, mine.sum, offset)};
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = mine;
  __syncthreads();
  LogSumExp total = of_warp[0];
  for (int w = 1; w < row_threads / warp_size; ++w) total = total + of_warp[w];
  return total;
}

template <class T>
__device__ void fill_zero(T* row, int width) {
  for (int column = threadIdx.x * pack_size; column < width; column += row_threads * pack_size)
    Pack{}.store(row + column);
}

}  // namespace tern::ops::cuda::detail
