/// What a transformer is made for, and what its passes are given.
#pragma once
#include "memory/views.hpp"
#include "model/dimensions.hpp"
#include "ops/ops.hpp"

namespace tern::model {

struct TransformerOptions {
  std::size_t batch, tokens;  // B, T of one micro-step
  bool training = true;       // false: no gradients, one Block::Saved for all layers
  bool recompute = false;     // keep block inputs only, run each block's forward again in backward
  std::size_t positions = 0;  // rows of the rotary table; 0: tokens
  std::size_t head_rows = 0;  // rows of a chunk of logits; 0: head_chunk_rows()
  std::size_t scored = 0;     // the most rows that the head is ever given; 0: all
  std::size_t in_flight = 1;  // micro-steps between a forward and its backward (pipelines)
  bool fp8 = false;           // multiply the linear maps of the blocks in 8 bits: ops/fp8.hpp
};

/// The rows of a pass, N = B*T of them.
struct Rows {
  Vector<const std::int32_t> tokens;            // (N)
  Vector<const std::int32_t> order = {};        // (N) rows sorted by token, for backward
  Vector<const std::int32_t> positions = {};    // (N); empty: row t of a sequence stands at t
  Vector<const std::int32_t> levels = {};       // (N) rows of the level embedding; empty: none
  Vector<const std::int32_t> level_order = {};  // (N) rows sorted by level, for backward
};

/// What the head predicts. M rows of the pass, or all N of them.
struct Scored {
  Vector<const std::int32_t> rows = {};  // (M) ascending; empty: all
  Vector<const std::int32_t> targets;    // (M), < 0: no loss
};

/// A micro-step: what its forward is given, and its backward again.
template <class T>
struct MicroStep {
  Rows rows;
  ops::Pattern pattern;
  /// `layer` is the first of the 1 + 2 layers x passes x steps streams that are drawn from.
  ops::DropoutKey dropout = {};
  std::size_t slot = 0;  // among those in flight
  /// Of experts, from Transformer::balance(); empty: the balance is no part of the loss.
  Vector<const Accumulate<T>> balanced = {};
  Sequences sequences = {0, 0};  // 0: those of the options; in evaluation there may be fewer rows
};

}  // namespace tern::model
