/// Shared by training's and decoding's views of a transformer: its parts bound to their
/// parameters, the buffers of their passes, and the course of a pass.
///
/// A step visits the blocks in the order of visits.hpp. A slot is one of the micro-batches in
/// flight, or one of the connected steps of a recursive model, of whose later steps each takes the
/// last slot. If the model is divided, all ranks of the replica make every call in the same order. A
/// pipeline stage receives the input of its first block from the previous stage instead of
/// embedding, and sends the output of its last block to the next instead of finishing; likewise
/// backward.
#pragma once
#include <algorithm>
#include <functional>

#include "block/block.hpp"
#include "model/detail/connections.hpp"
#include "model/detail/embedding.hpp"
#include "model/detail/head.hpp"
#include "model/detail/recursion.hpp"
#include "model/detail/value_embeddings.hpp"
#include "model/pass.hpp"

namespace tern::model::detail {

template <class T>
class LayerStack {
  using A = Accumulate<T>;

 public:
  /// Buffers of the final norm in one pass, with the rows of a subset if there is one.
  struct Final {
    Matrix<T> input, output;  // (N, D)
    typename Norm<T>::Saved saved;
  };

  LayerStack(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
             const TransformerOptions& options, Arena& arena);
  LayerStack(const LayerStack&) = delete;  // the parts refer to each other
  LayerStack& operator=(const LayerStack&) = delete;

  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context&) const;

  const ModelShard& share() const { return shared.links.share(); }
  std::size_t layers() const { return layers_.size(); }  // on this stage
  std::size_t passes() const { return recursion.passes(); }
  /// Visits to blocks in a step, and final norms.
  const std::vector<Visit>& visits() const { return visits_; }
  std::size_t results() const { return *visits_.back().result + 1; }
  /// Slot of a step, from the micro-batch's.
  std::size_t slot_of(std::size_t slot, std::size_t step) const {
    return slot + std::min(step, options.connected - 1);
  }
  Sequences sequences() const { return {options.batch, options.tokens}; }
  /// Whether the last block computes no rows after its attention but those that are scored. The
  /// final norm's input is then its output, in backward the gradient of it.
  bool computes_scored_only() const { return computes_scored_only_; }
  /// Of the last visit for the micro-batch in `slot`, if not all rows are scored.
  ScoredRows<T> last_scored_rows(std::size_t slot, const Scored&) const;
  ScoredRows<T> subset(std::size_t slot, const Visit& visit, const Scored& scored) const {
    return visit.kept == visits_.back().kept ? last_scored_rows(slot, scored) : ScoredRows<T>();
  }
  /// Where backward begins with the gradient of the last block's output.
  StreamGradient<T> output_gradient(std::size_t slot) const {
    if (!options.weights_later) return {dstream, share().last()};
    return {output_of(slot, visits_.back(), sequences()), share().last(), last_dqkv_[slot]};
  }
  // Gradients of the last block's output, for the rows of a subset if there is one, and of the
  // first one's input.
  Matrix<T> last_gradient(std::size_t slot, const Scored& scored = {}) const {
    const ScoredRows<T> some = last_scored_rows(slot, scored);
    return some.wanted() ? some.stream : output_gradient(slot).rows;
  }
  Matrix<T> first_gradient(std::size_t slot) const {
    return options.weights_later ? saved(slot, visits_.front(), sequences()).input : dstream;
  }

  // Views narrowed to the rows of the sequences.
  typename Block<T>::Saved saved(std::size_t slot, const Visit&, const Sequences&) const;
  Matrix<T> output_of(std::size_t slot, const Visit&, const Sequences&) const;
  /// `result` counts the final norms of a step.
  Final final_of(std::size_t slot, std::size_t result, const Sequences&,
                 const Scored& scored = {}) const;
  const typename Block<T>::Parameters& parameters_of(std::size_t layer) const {
    return layers_[layer];
  }

  /// If fully sharded, gathers the layer.
  void unshard(const ops::Context&, std::size_t layer) const;
  /// A visit's forward, from the output of the visit before to its own.
  Stream<T> forward(const ops::Context&, std::size_t slot, const Visit&, const Sequences&,
                    const typename Block<T>::Attend&, const BlockDropout&, Stream<T> stream,
                    const Scored& scored = {}) const;
  /// The final norm after a visit; the result (N, D), or of the rows of a subset.
  Matrix<const T> finish(const ops::Context&, std::size_t slot, const Visit&, const Sequences&,
                         const Scored& scored) const;
  /// A step over the embedded rows of the micro-batch in `slot`, with run(visit, stream) for each
  /// visit's forward(); the last result. A recursive model takes several steps, counted from 0.
  using Run = std::function<Stream<T>(const Visit&, Stream<T>)>;
  Matrix<const T> advance(const ops::Context&, std::size_t slot, std::size_t step, const Sequences&,
                          const Run& run, const Scored& scored = {}) const;
  /// A visit's backward, from output_gradient() or that of the next visit's input.
  void backward(const ops::Context&, std::size_t slot, const Visit&, const MicroBatch<T>&,
                const Mask&, const BlockDropout&, StreamGradient<T>&, WeightGradients<T>&) const;
  /// Logits (M, V) of finished rows (M, D), the same on all ranks of the replica, so that all
  /// sample the same tokens.
  void logits_of(const ops::Context& context, Matrix<const T> rows, Matrix<T> result) const {
    head.logits_of(context, shared.links, rows, result);
    shared.links.from_last(context, result.data(), result.size() * sizeof(T));
  }

  /// Whether layers have no other matrices than those of their linear maps.
  bool all_matrices_are_maps(const ParameterTree& tree) const;

  const TransformerOptions options;
  const Dimensions size;
  const std::size_t first_layer;                         // index of this stage's first
  const std::shared_ptr<FullSharding<T>> full_sharding;  // null unless fully sharded
  BlockShared<T> shared;
  Block<T> block;
  Norm<T> norm;
  Gain<T> final_norm;
  Embedding<T> embedding;
  Head<T> head;
  Recursion<T> recursion;
  Connections<T> connections;
  ValueEmbeddings<T> values;
  // Workspace of training and losses.
  Matrix<T> dstream;                 // (N, D) gradient of the residual stream
  std::vector<Matrix<T>> dfinished;  // (N, D) per connected step
  Matrix<T> picked,
      dpicked;  // (M, D), where not all rows are scored, unless computes_scored_only()

 private:
  void allocate_training(Arena& arena);
  void allocate_evaluation(Arena& arena);
  void carve_workspace(Arena& arena);
  void allocate_workspace(Arena& arena, const deck::Model& model);
  std::size_t head_rows() const;
  std::size_t at(std::size_t slot, const Visit& visit) const {
    return slot * visits_.size() + visit.kept;
  }
  /// Input of a visit that starts from states, from those of the previous passes.
  void enter(const ops::Context&, std::size_t slot, std::size_t step, const Visit&,
             const Sequences&) const;

  bool computes_scored_only_;
  std::vector<typename Block<T>::Parameters> layers_;
  std::vector<Visit> visits_;
  // In training, per slot: saved_, without recomputation, and inputs_ per visit; finals_ per
  // result.
  std::vector<typename Block<T>::Saved> saved_;
  std::vector<Matrix<T>> inputs_;  // (N, D)
  std::vector<Final> finals_;
  std::vector<Matrix<T>> last_dqkv_;  // (N, (H + 2K) E) per slot, with weights_later
  typename Block<T>::Saved shared_;   // for evaluation and recomputation
  Matrix<T> latent_, answer_;         // (N, D), evaluation with several passes
};

}  // namespace tern::model::detail
