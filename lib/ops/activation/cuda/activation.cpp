#include "ops/activation/activation.hpp"
#include "ops/activation/cuda/functions.hpp"
#include "ops/elementwise/cuda/rounding.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

// One thread per pack. All threads of a warp live to find its largest magnitude.
template <class F, class T>
__global__ void activation_packs(const T* x, T* y, std::size_t packs, std::uint32_t* magnitude) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  Pack value{};
  if (at < packs) {
    value = Pack::load(x + at * pack_size);
    for (float& v : value.value) v = F::forward(v);
    value.store(y + at * pack_size);
  }
  if (magnitude) raise_magnitude(magnitude, larger(0, value));
}

template <class F, class T>
__global__ void activation_packs_backward(const T* x, const T* dy, T* dx, std::size_t packs,
                                          std::uint32_t* magnitude) {
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
template <class T>
__global__ void swiglu_forward(const T* x, T* y, std::size_t width, std::uint32_t* magnitude) {
  const std::size_t column = (blockIdx.x * block_threads + threadIdx.x) * pack_size;
  release_next();
  await_previous();
  Pack gate{};
  if (column < width) {
    const std::size_t row = blockIdx.y + std::size_t(gridDim.y) * blockIdx.z;
    const T* from = x + row * 2 * width + column;
    gate = Pack::load(from);
    const Pack up = Pack::load(from + width);
    for (int i = 0; i < pack_size; ++i) gate.value[i] *= sigmoid(gate.value[i]) * up.value[i];
    gate.store(y + row * width + column);
  }
  if (magnitude) raise_magnitude(magnitude, larger(0, gate));
}

template <class T>
__global__ void swiglu_backward(const T* x, const T* dy, T* dx, std::size_t width,
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

// ---- rounded to fp8 on the way (rounding.hpp), x (N, planes of F)

template <class F>
struct Activated : SideBySide {
  static constexpr int planes = 1;
  const bf16* x;
  std::size_t width;
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    load_chunk(x + row * width + column, to[0]);
    for (float& value : to[0]) value = F::forward(value);
  }
};

template <class F>
struct ActivatedBackward : SideBySide {
  static constexpr int planes = 1;
  const bf16 *x, *dy;
  std::size_t width;
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    float gradient[chunk];
    load_chunk(x + row * width + column, to[0]);
    load_chunk(dy + row * width + column, gradient);
    for (int i = 0; i < chunk; ++i) to[0][i] = gradient[i] * F::derivative(to[0][i]);
  }
};

struct Swiglu : SideBySide {
  static constexpr int planes = 1;
  const bf16* x;
  std::size_t width;
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    const bf16* from = x + row * 2 * width + column;
    float up[chunk];
    load_chunk(from, to[0]);
    load_chunk(from + width, up);
    for (int i = 0; i < chunk; ++i) to[0][i] *= sigmoid(to[0][i]) * up[i];
  }
};

struct SwigluBackward : SideBySide {
  static constexpr int planes = 2;
  const bf16 *x, *dy;
  std::size_t width;
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    const bf16* from = x + row * 2 * width + column;
    float gradient[chunk];
    load_chunk(from, to[0]);
    load_chunk(from + width, to[1]);
    load_chunk(dy + row * width + column, gradient);
    for (int i = 0; i < chunk; ++i) {
      const float g = to[0][i], u = to[1][i], s = sigmoid(g), d = gradient[i];
      to[0][i] = d * u * s * (1 + g * (1 - s));
      to[1][i] = d * g * s;
    }
  }
};

/// Calls of_swiglu, or of_unary with the activation's function.
template <class S, class U>
void by_kind(Activation kind, const S& of_swiglu, const U& of_unary) {
  switch (kind) {
    case Activation::swiglu:
      return of_swiglu();
    case Activation::gelu:
      return of_unary(Gelu{});
    case Activation::relu2:
      return of_unary(Relu2{});
  }
}

/// Rounded on the way; false if it cannot be.
template <class T>
bool forward_to_fp8(const Context& context, Activation kind, Matrix<const T> x,
                    const Fp8Matrix& rounded) {
  if constexpr (rounds_to_fp8<T>) {
    if (!rounds_on_the_way(rounded, context.scaling)) return false;
    const std::size_t width = x.extent(1) / (gated(kind) ? 2 : 1);
    const auto launch = [&](const auto& source) {
      launch_rounding("activation_forward", stream_of(context), source, x.extent(0), width, rounded,
                      context.scaling);
    };
    by_kind(
        kind,
        [&] {
          launch(Swiglu{{}, x.data(), width});
        },
        [&](auto f) {
          launch(Activated<decltype(f)>{{}, x.data(), width});
        });
    return true;
  }
  return false;
}
template <class T>
bool backward_to_fp8(const Context& context, Activation kind, Matrix<const T> x, Matrix<const T> dy,
                     const Fp8Matrix& rounded) {
  if constexpr (rounds_to_fp8<T>) {
    if (!rounds_on_the_way(rounded, context.scaling)) return false;
    const std::size_t width = dy.extent(1);
    const auto launch = [&](const auto& source) {
      launch_rounding("activation_backward", stream_of(context), source, dy.extent(0), width,
                      rounded, context.scaling);
    };
    by_kind(
        kind,
        [&] {
          launch(SwigluBackward{{}, x.data(), dy.data(), width});
        },
        [&](auto f) {
          launch(ActivatedBackward<decltype(f)>{{}, x.data(), dy.data(), width});
        });
    return true;
  }
  return false;
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

template <class T>
bool ActivationForward<T>::native(const Context& context, const ActivationForward& call) {
  if (call.y.size() == 0) return true;
  if (cannot_round<T>(call.rounded)) return false;
  const std::size_t rows = call.y.extent(0), width = call.y.extent(1),
                    packs = call.y.size() / pack_size;
  const auto stream = stream_of(context);
  dim3 grid;
  if (!all_aligned(call.x.data(), call.y.data()) || width % pack_size != 0 ||
      !row_grid(rows, width, grid))
    return false;
  if (forward_to_fp8(context, call.kind, call.x, call.rounded)) return true;
  const unsigned flat = blocks_for(packs, block_threads);
  std::uint32_t* most = raised_magnitude(call.rounded, context.scaling, stream);
  by_kind(
      call.kind,
      [&] {
        launch_early("activation_forward", &swiglu_forward<T>, grid, block_threads, 0, stream,
                     call.x.data(), call.y.data(), width, most);
      },
      [&](auto f) {
        activation_packs<decltype(f)>
            <<<flat, block_threads, 0, stream>>>(call.x.data(), call.y.data(), packs, most);
      });
  check_launch("activation_forward");
  round_stored(stream, call.y, call.rounded, context.scaling);
  return true;
}

template <class T>
bool ActivationBackward<T>::native(const Context& context, const ActivationBackward& call) {
  if (call.dy.size() == 0) return true;
  if (cannot_round<T>(call.rounded)) return false;
  const std::size_t rows = call.dy.extent(0), width = call.dy.extent(1),
                    packs = call.dy.size() / pack_size;
  const auto stream = stream_of(context);
  dim3 grid;
  if (!all_aligned(call.x.data(), call.dy.data(), call.dx.data()) || width % pack_size != 0 ||
      !row_grid(rows, width, grid))
    return false;
  if (backward_to_fp8(context, call.kind, call.x, call.dy, call.rounded)) return true;
  const unsigned flat = blocks_for(packs, block_threads);
  std::uint32_t* most = raised_magnitude(call.rounded, context.scaling, stream);
  by_kind(
      call.kind,
      [&] {
        swiglu_backward<<<grid, block_threads, 0, stream>>>(call.x.data(), call.dy.data(),
                                                            call.dx.data(), width, most);
      },
      [&](auto f) {
        activation_packs_backward<decltype(f)><<<flat, block_threads, 0, stream>>>(
            call.x.data(), call.dy.data(), call.dx.data(), packs, most);
      });
  check_launch("activation_backward");
  round_stored(stream, call.dx, call.rounded, context.scaling);
  return true;
}

TERN_INSTANTIATE_NATIVE(ActivationForward)
TERN_INSTANTIATE_NATIVE(ActivationBackward)

}  // namespace tern::ops
