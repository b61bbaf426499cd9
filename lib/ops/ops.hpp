/// The operations of a transformer, forward and backward, by family.
///
/// Legend: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value heads, E head size, F
/// ffn, V vocabulary, I/O inputs/outputs of a linear map. All views are row-major. T in {float,
/// bf16, fp16, double} is the storage type; sums, statistics and weight gradients are in Accumulate<T>
/// (float; double for double). Weight gradients are accumulated; all other outputs are overwritten
/// unless stated otherwise. No operation synchronizes with the host. Results repeat bit for bit on
/// the same device and layout: no atomic floating-point sums.
///
/// An operation is a struct of its operands, given to run(): core/operation.hpp. FAMILY/functions.hpp
/// has the same as functions.
#pragma once
#include "ops/activation/functions.hpp"
#include "ops/attention/functions.hpp"
#include "ops/decode/functions.hpp"
#include "ops/elementwise/functions.hpp"
#include "ops/linear/functions.hpp"
#include "ops/loss/functions.hpp"
#include "ops/moe/functions.hpp"
#include "ops/norm/functions.hpp"
#include "ops/optimizer/functions.hpp"
