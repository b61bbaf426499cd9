/// Activations of one number and their slopes.
#pragma once

namespace tern::ops::cuda {

__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

/// gelu(x) = x sigmoid(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form, rewritten.
struct Gelu {
  static constexpr float scale = 2 * 0.79788456080286536f, cubic = 0.044715f;
  __device__ static float forward(float x) { return x * sigmoid(scale * (x + cubic * x * x * x)); }
  __device__ static float derivative(float x) {
    const float s = sigmoid(scale * (x + cubic * x * x * x));
    return s + x * s * (1 - s) * scale * (1 + 3 * cubic * x * x);
  }
};
struct Relu2 {
  __device__ static float forward(float x) { return x > 0 ? x * x : 0.0f; }
  __device__ static float derivative(float x) { return x > 0 ? 2 * x : 0.0f; }
};

}  // namespace tern::ops::cuda
