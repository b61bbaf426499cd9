/// Options of a transformer and inputs of its passes.
#pragma once
#include "block/dimensions.hpp"
#include "memory/views.hpp"
#include "ops/ops.hpp"

namespace tern::model {

struct TransformerOptions {
  std::size_t batch, tokens;  // B, T of one micro-batch
  bool training = true;       // false: no gradients, one Block::Saved for all layers
  bool recompute = false;     // keep block inputs only, run each block's forward again in backward
  std::size_t positions = 0;  // rows of the rotary table; 0: tokens
  std::size_t head_rows = 0;  // rows per chunk of logits; 0: head_chunk_rows()
  std::size_t scored = 0;     // maximum of Scored::rows; 0: all rows are scored
  std::size_t in_flight = 1;  // micro-batches between a forward and its backward (pipelines)
  /// Training a recursive model: the first steps, whose states pass gradients; all of them are
  /// kept until the last one's backward (detail/recursion.hpp).
  std::size_t connected = 1;
  bool fp8 = false;  // linear maps of the blocks, and gradients of the head, in fp8: ops/fp8.hpp
  /// Evaluation, without fp8: weights of these maps in fp8: ops/fp8_weight.hpp.
  bool fp8_weights = false;
  bool fp8_inputs = false;  // with fp8_weights: the maps' inputs as well
  /// In a pipeline: Transformer::backward() leaves the gradients of the blocks' weights to
  /// WeightGradients::run_later(). On one tensor rank, without recompute, fp8 and experts.
  bool weights_later = false;
  bool overlapped = false;  // evaluation in a pipeline: as in DecoderOptions
};

/// Whether the last block computes no rows after its attention but those that are scored.
bool computes_scored_only(const deck::Model& model, const ModelShard& share,
                          const TransformerOptions& options);

/// The rows of a pass, N = B*T of them.
struct Rows {
  Vector<const std::int32_t> tokens;            // (N)
  Vector<const std::int32_t> order = {};        // (N) rows sorted by token, for backward
  Vector<const std::int32_t> positions = {};    // (N); empty: row t of a sequence is at t
  Vector<const std::int32_t> levels = {};       // (N) rows of the level embedding; empty: none
  Vector<const std::int32_t> level_order = {};  // (N) rows sorted by level, for backward
};

/// Predictions of the head: M rows of the pass, or all N.
struct Scored {
  Vector<const std::int32_t> rows = {};     // (M) ascending; empty: all
  Vector<const std::int32_t> targets = {};  // (M), < 0: no loss
};

/// Inputs of a micro-batch's forward, given again to its backward.
template <class T>
struct MicroBatch {
  Rows rows;
  ops::Pattern pattern;
  Scored scored = {};
  /// `layer` is the first of 1 + 2 layers x passes x steps random streams.
  ops::DropoutKey dropout = {};
  std::size_t slot = 0;  // among those in flight
  /// In fp8: the first micro-batch in its slot since the weights changed. It finds the scales that
  /// the following ones use, and the first slot's rounds the weights for all.
  bool first = true;
  /// From Transformer::balance(), for experts; empty: no load-balance loss.
  Vector<const Accumulate<T>> balanced = {};
  Sequences sequences = {0, 0};  // 0: those of the options; evaluation may have fewer rows
};

}  // namespace tern::model
