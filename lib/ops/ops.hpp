/// The operations of a transformer, forward and backward, by family.
///
/// Legend: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value heads, E head size, F
/// ffn, V vocabulary, I/O inputs/outputs of a linear map. All views are row-major. T in {float,
/// bf16, fp16, double} is the storage type; sums, statistics and weight gradients are in Accumulate<T>
/// (float; double for double). Weight gradients are accumulated; all other outputs are overwritten
/// unless stated otherwise. No operation synchronizes with the host. Results repeat bit for bit on
/// the same device and layout: no atomic floating-point sums.
///
/// Every operation has a portable version (portable/: Kokkos, every backend): the reference. Some
/// try a native kernel first (cuda/, for bf16 and fp16, where Context::library is set): native.hpp.
#pragma once
#include "ops/activation/activation.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/head_norm.hpp"
#include "ops/decode/paged_cache.hpp"
#include "ops/decode/sampling.hpp"
#include "ops/elementwise/connection.hpp"
#include "ops/elementwise/dropout.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/linear/fp8.hpp"
#include "ops/linear/fp8_weight.hpp"
#include "ops/linear/linear.hpp"
#include "ops/linear/linear_inference.hpp"
#include "ops/loss/embedding.hpp"
#include "ops/loss/loss.hpp"
#include "ops/loss/vocabulary.hpp"
#include "ops/moe/experts.hpp"
#include "ops/norm/norm.hpp"
#include "ops/optimizer/optimizer.hpp"
