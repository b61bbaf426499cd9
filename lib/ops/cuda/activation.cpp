#include "ops/activation.hpp"
#include "ops/cuda/detail/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

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

// One thread per pack. All threads of a warp live to find its largest magnitude.
template <class F>
__global__ void activation_packs(const bf16* x, bf16* y, std::size_t packs,
                                 std::uint32_t* magnitude) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  Pack value{};
  if (at < packs) {
    value = Pack::load(x + at * pack_size);
    for (float& v : value.value) v = F::forward(v);
    value.store(y + at * pack_size);
  }
  if (magnitude) raise_magnitude(magnitude, larger(0, value));
}

template <class F>
__global__ void activation_packs_backward(const bf16* x, const bf16* dy, bf16* dx,
                                          std::size_t packs, std::uint32_t* magnitude) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  Pack value{};
  if (at < packs) {
    value = Pack::load(x + at * pack_size);
    const Pack gradient = Pack::load(dy + at * pack_size);
    for (int i = 0; i < pack_size; ++i)
      value.value[i] = gradient.value[i] * F::derivative(value.value[i]);
    value.store(dx + at * pack_size);
  }
  if (magnitude) raise_magnitude(magnitude, larger(0, value));
}

// swiglu: blockIdx.y is the row, x (N, 2F) = [gate | up].
__global__ void swiglu_forward(const bf16* x, bf16* y, std::size_t width,
                               std::uint32_t* magnitude) {
  const std::size_t column = (blockIdx.x * block_threads + threadIdx.x) * pack_size;
  release_next();
  await_previous();
  Pack gate{};
  if (column < width) {
    const std::size_t row = blockIdx.y + std::size_t(gridDim.y) * blockIdx.z;
    const bf16* from = x + row * 2 * width + column;
    gate = Pack::load(from);
    const Pack up = Pack::load(from + width);
    for (int i = 0; i < pack_size; ++i) gate.value[i] *= sigmoid(gate.value[i]) * up.value[i];
    gate.store(y + row * width + column);
  }
  if (magnitude) raise_magnitude(magnitude, larger(0, gate));
}

__global__ void swiglu_backward(const bf16* x, const bf16* dy, bf16* dx, std::size_t width,
                                std::uint32_t* magnitude) {
  const std::size_t column = (blockIdx.x * block_threads + threadIdx.x) * pack_size;
  Pack gate{}, up{};
  if (column < width) {
    const std::size_t row = blockIdx.y + std::size_t(gridDim.y) * blockIdx.z;
    const std::size_t start = row * 2 * width + column;
    gate = Pack::load(x + start), up = Pack::load(x + start + width);
    const Pack gradient = Pack::load(dy + row * width + column);
    for (int i = 0; i < pack_size; ++i) {
      const float g = gate.value[i], u = up.value[i], s = sigmoid(g), d = gradient.value[i];
      gate.value[i] = d * u * s * (1 + g * (1 - s));
      up.value[i] = d * g * s;
    }
    gate.store(dx + start);
    up.store(dx + start + width);
  }
  if (magnitude) raise_magnitude(magnitude, larger(larger(0, gate), up));
}

/// Rows are in y and z, since either has at most 65535 blocks; false if they do not factor.
bool row_grid(std::size_t rows, std::size_t width, dim3& grid) {
  std::size_t y = rows;
  unsigned z = 1;
  while (y > 65535 && y % 2 == 0) y /= 2, z *= 2;
  grid = dim3(blocks_for(width / pack_size, block_threads), static_cast<unsigned>(y), z);
  return y <= 65535 && z <= 65535;
}

}  // namespace

bool native_activation_forward(const Context& context, Activation kind, Matrix<const bf16> x,
                               Matrix<bf16> y, Magnitude magnitude) {
  if (y.size() == 0) return true;
  const std::size_t width = y.extent(1), packs = y.size() / pack_size;
  const auto stream = stream_of(context);
  dim3 grid;
  if (!all_aligned(x.data(), y.data()) || width % pack_size != 0 ||
      !row_grid(y.extent(0), width, grid))
    return false;
  const unsigned flat = blocks_for(packs, block_threads);
  std::uint32_t* most = start_magnitude(magnitude, stream);
  if (kind == Activation::swiglu)
    launch_early("activation_forward", &swiglu_forward, grid, block_threads, 0, stream, x.data(),
                 y.data(), width, most);
  else if (kind == Activation::gelu)
    activation_packs<Gelu><<<flat, block_threads, 0, stream>>>(x.data(), y.data(), packs, most);
  else
    activation_packs<Relu2><<<flat, block_threads, 0, stream>>>(x.data(), y.data(), packs, most);
  check_launch("activation_forward");
  return true;
}

bool native_activation_backward(const Context& context, Activation kind, Matrix<const bf16> x,
                                Matrix<const bf16> dy, Matrix<bf16> dx, Magnitude magnitude) {
  if (dy.size() == 0) return true;
  const std::size_t width = dy.extent(1), packs = dy.size() / pack_size;
  const auto stream = stream_of(context);
  dim3 grid;
  if (!all_aligned(x.data(), dy.data(), dx.data()) || width % pack_size != 0 ||
      !row_grid(dy.extent(0), width, grid))
    return false;
  const unsigned flat = blocks_for(packs, block_threads);
  std::uint32_t* most = start_magnitude(magnitude, stream);
  if (kind == Activation::swiglu)
    swiglu_backward<<<grid, block_threads, 0, stream>>>(x.data(), dy.data(), dx.data(), width,
                                                        most);
  else if (kind == Activation::gelu)
    activation_packs_backward<Gelu>
        <<<flat, block_threads, 0, stream>>>(x.data(), dy.data(), dx.data(), packs, most);
  else
    activation_packs_backward<Relu2>
        <<<flat, block_threads, 0, stream>>>(x.data(), dy.data(), dx.data(), packs, most);
  check_launch("activation_backward");
  return true;
}

}  // namespace tern::ops
