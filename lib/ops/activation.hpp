/// MLP activations, and dropout. Conventions: ops.hpp.
#pragma once
#include "base/activation.hpp"
#include "base/random.hpp"
#include "ops/fp8_matrix.hpp"

namespace tern::ops {

using tern::Activation;  // base/activation.hpp
/// x (N, 2F) = [gate | up] for swiglu, else (N, F); y (N, F). `rounded`: y in fp8, or none.
template <class T>
void activation_forward(const Context&, Activation, Matrix<const T> x, Matrix<T> y,
                        const Fp8Matrix& rounded = {});
/// dx is shaped as x and may alias it. `rounded`: dx in fp8, or none.
template <class T>
void activation_backward(const Context&, Activation, Matrix<const T> x, Matrix<const T> dy,
                         Matrix<T> dx, const Fp8Matrix& rounded = {});

// ---- dropout (Srivastava et al. 2014)

/// Key of a dropout's random numbers: they depend on nothing else, so backward and recomputation
/// draw the same ones.
struct DropoutKey {
  double probability = 0;
  std::uint64_t seed = 0, step = 0;
  std::uint32_t layer = 0;
  std::uint32_t first_row = 0;  // global row number of row 0, so that rank layouts agree
};
/// The draw for columns [4 group, 4 group + 4) of a row, of fewer than 4 Mi columns.
TERN_FUNCTION Random4 dropout_draw(const DropoutKey& key, std::size_t row, std::size_t group) {
  return philox(key.seed, Stream::dropout, key.step,
                key.first_row + static_cast<std::uint32_t>(row),
                (key.layer << 20) | static_cast<std::uint32_t>(group));
}
/// y = added + d(x), each (N, D), where d zeroes a number with the key's probability p and else
/// scales it by 1 / (1 - p); the sum is rounded once. `added` may be empty; y may be x or `added`.
/// d is its own backward operation.
template <class T>
void dropout(const Context&, const DropoutKey&, Matrix<const T> x, Matrix<const T> added,
             Matrix<T> y);

template <class T>
bool native_activation_forward(const Context& context, Activation kind, Matrix<const T> x,
                               Matrix<T> y, const Fp8Matrix& rounded);
template <>
inline constexpr auto twin<&activation_forward<bf16>> =
    native_twin("tern::activation_forward", native_activation_forward<bf16>);
template <>
inline constexpr auto twin<&activation_forward<fp16>> =
    native_twin("tern::activation_forward", native_activation_forward<fp16>);
template <>
struct Traffic<&activation_forward<bf16>> {
  double operator()(Activation, const auto& x, const auto& y, const Fp8Matrix& rounded) const {
    return bytes_of(x) + result_bytes(y, rounded);
  }
};
template <>
struct Traffic<&activation_forward<fp16>> : Traffic<&activation_forward<bf16>> {};
template <class T>
bool native_activation_backward(const Context& context, Activation kind, Matrix<const T> x,
                                Matrix<const T> dy, Matrix<T> dx, const Fp8Matrix& rounded);
template <>
inline constexpr auto twin<&activation_backward<bf16>> =
    native_twin("tern::activation_backward", native_activation_backward<bf16>);
template <>
inline constexpr auto twin<&activation_backward<fp16>> =
    native_twin("tern::activation_backward", native_activation_backward<fp16>);
template <>
struct Traffic<&activation_backward<bf16>> {
  double operator()(Activation, const auto& x, const auto& dy, const auto& dx,
                    const Fp8Matrix& rounded) const {
    return bytes_of(x) + bytes_of(dy) + result_bytes(dx, rounded);
  }
};
template <>
struct Traffic<&activation_backward<fp16>> : Traffic<&activation_backward<bf16>> {};
template <class T>
bool native_dropout(const Context& context, const DropoutKey& key, Matrix<const T> x,
                    Matrix<const T> added, Matrix<T> y);
template <>
inline constexpr auto twin<&dropout<bf16>> = native_twin("tern::dropout", native_dropout<bf16>);
template <>
inline constexpr auto twin<&dropout<fp16>> = native_twin("tern::dropout", native_dropout<fp16>);
template <>
struct Traffic<&dropout<bf16>> {
  double operator()(const DropoutKey&, const auto& x, const auto& added, const auto& y) const {
    return bytes_of(x) + bytes_of(added) + bytes_of(y);
  }
};
template <>
struct Traffic<&dropout<fp16>> : Traffic<&dropout<bf16>> {};

}  // namespace tern::ops
