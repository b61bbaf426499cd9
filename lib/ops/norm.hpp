/// RMSNorm and LayerNorm of rows, and RMSNorm of each head. Conventions: ops.hpp.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

enum class Norm { rmsnorm, layernorm };  // Zhang & Sennrich 2019; Ba et al. 2016
/// y (N, D) = normalised x (N, D) * gain (D) + bias (D, empty for rmsnorm). mean (N, empty for
/// rmsnorm) and rstd (N) are kept for backward, in Accumulate<T>.
template <class T>
void norm_forward(const Context&, Norm, Matrix<const T> x, Vector<const T> gain,
                  Vector<const T> bias, double eps, Matrix<T> y, Vector<Accumulate<T>> mean,
                  Vector<Accumulate<T>> rstd);
/// dx (N, D) is added to (`add`: the residual's gradient is already there) or overwritten; dgain
/// (D) and dbias (D) are added to. partial: workspace of norm_partials(D) numbers.
template <class T>
void norm_backward(const Context&, Norm, Matrix<const T> dy, Matrix<const T> x,
                   Vector<const T> gain, Vector<const Accumulate<T>> mean,
                   Vector<const Accumulate<T>> rstd, Matrix<T> dx, Write,
                   Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> dbias,
                   Vector<Accumulate<T>> partial);
/// Size of the workspace of norm_backward and head_norm_backward for rows of `width`.
std::size_t norm_partials(std::size_t width);

/// RMSNorm of each head's vector (Qwen3's q/k norm), in place. x (B, T, heads, E), gain (E),
/// rstd (B*T*heads). The normalised, gained result is kept in x; backward recovers the rest from
/// it. `saved` (B*T, heads*E) receives a copy of the input x. saved and rstd may be empty where
/// no backward follows.
template <class T>
void head_norm_forward(const Context&, Heads<T> x, Vector<const T> gain, double eps,
                       Matrix<T> saved, Vector<Accumulate<T>> rstd);
/// dx (B, T, heads, E) in place: gradient of the output in, of the input out. dgain (E) is added
/// to.
template <class T>
void head_norm_backward(const Context&, Heads<T> dx, Matrix<const T> saved, Vector<const T> gain,
                        Vector<const Accumulate<T>> rstd, Vector<Accumulate<T>> dgain,
                        Vector<Accumulate<T>> partial);

Twin<&norm_forward<bf16>> native_norm_forward;
template <>
inline constexpr auto twin<&norm_forward<bf16>> = in_cuda("tern::norm_forward",
                                                          native_norm_forward);
Twin<&norm_backward<bf16>> native_norm_backward;
template <>
inline constexpr auto twin<&norm_backward<bf16>> = in_cuda("tern::norm_backward",
                                                           native_norm_backward);
Twin<&head_norm_forward<bf16>> native_head_norm_forward;
template <>
inline constexpr auto twin<&head_norm_forward<bf16>> = in_cuda("tern::head_norm_forward",
                                                               native_head_norm_forward);
Twin<&head_norm_backward<bf16>> native_head_norm_backward;
template <>
inline constexpr auto twin<&head_norm_backward<bf16>> = in_cuda("tern::head_norm_backward",
                                                                native_head_norm_backward);

}  // namespace tern::ops
