/// Second step of a sum over rows: adds the blocks' partial sums, in a fixed order.
#pragma once
#include "ops/core/cuda/kernels.hpp"

namespace tern::ops::cuda::detail {

/// result (width) += column sums of partial (slices, width), in a fixed order.
static __global__ void sum_columns(const float* partial, int slices, int width, float* result) {
  __shared__ float shared[warp_size][warp_size + 1];
  const int column = blockIdx.x * warp_size + threadIdx.x;
  float sum = 0;
  if (column < width)
    for (int s = threadIdx.y; s < slices; s += warp_size) sum += partial[s * width + column];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(shared[threadIdx.x][threadIdx.y]);
  const int mine = blockIdx.x * warp_size + threadIdx.y;
  if (threadIdx.x == 0 && mine < width) result[mine] += sum;
}

inline void add_columns(const Context& context, const float* partial, int slices, int width,
                        float* result) {
  sum_columns<<<divide_up(width, warp_size), dim3(warp_size, warp_size), 0, stream_of(context)>>>(
      partial, slices, width, result);
}

}  // namespace tern::ops::cuda::detail
