/// The operations of a transformer, forward and backward, by family.
///
/// Legend: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value heads, E head size, F
/// ffn, V vocabulary, I/O inputs/outputs of a linear map. All views are row-major. T in {float,
/// bf16, fp16, double} is the storage type; sums, statistics and weight gradients are in Accumulate<T>
/// (float; double for double). Weight gradients are accumulated; all other outputs are overwritten
/// unless stated otherwise. No operation synchronizes with the host. Results repeat bit for bit on
/// the same device and layout: no atomic floating-point sums.
///
/// An operation is its portable definition (portable/: Kokkos, every backend, the reference). Some
/// try a native twin first (cuda/, for bf16 and fp16, where Context::library is set): native.hpp.
#pragma once
#include "ops/activation.hpp"
#include "ops/attention.hpp"
#include "ops/connection.hpp"
#include "ops/dropout.hpp"
#include "ops/elementwise.hpp"
#include "ops/embedding.hpp"
#include "ops/experts.hpp"
#include "ops/fp8.hpp"
#include "ops/fp8_weight.hpp"
#include "ops/head_norm.hpp"
#include "ops/linear.hpp"
#include "ops/linear_inference.hpp"
#include "ops/loss.hpp"
#include "ops/norm.hpp"
#include "ops/optimizer.hpp"
#include "ops/paged_cache.hpp"
#include "ops/sampling.hpp"
#include "ops/vocabulary.hpp"
