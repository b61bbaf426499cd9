/// Core shared by training's and decoding's views of a transformer: its parts bound to their
/// parameters, the buffers of their passes, and the course of a pass.
///
/// A place is a block in a pass: pass x layers() + layer. A slot is one of the micro-batches in
/// flight. If the model is divided, all ranks of the replica make every call in the same order. A
/// pipeline stage receives the input of its first block from the previous stage instead of
/// embedding, and sends the output of its last block to the next instead of finishing; likewise
/// backward.
#pragma once
#include <functional>

#include "model/block/block.hpp"
#include "model/detail/embedding.hpp"
#include "model/detail/head.hpp"
#include "model/detail/recursion.hpp"
#include "model/pass.hpp"

namespace tern::model::detail {

template <class T>
class Core {
  using A = Accumulate<T>;

 public:
  /// Buffers of the final norm in one pass.
  struct Final {
    Matrix<T> input, output;  // (N, D)
    typename Norm<T>::Saved saved;
  };

  Core(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
       const TransformerOptions& options, Arena& arena);
  Core(const Core&) = delete;  // the parts refer to each other
  Core& operator=(const Core&) = delete;

  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context&) const;

  const Share& share() const { return common.links.share(); }
  std::size_t layers() const { return layers_.size(); }  // on this stage
  std::size_t passes() const { return recursion.passes(); }
  std::size_t places() const { return passes() * layers(); }
  Sequences sequences() const { return {options.batch, options.tokens}; }

  // Views narrowed to the rows of the sequences.
  typename Block<T>::Saved saved(std::size_t slot, std::size_t place, const Sequences&) const;
  Matrix<T> output_of(std::size_t slot, std::size_t place, const Sequences&) const;
  Final final_of(std::size_t slot, std::size_t pass, const Sequences&) const;
  const typename Block<T>::Parameters& parameters_of(std::size_t place) const {
    return layers_[place % layers_.size()];
  }

  /// If fully sharded, gathers the place's layer.
  void need(const ops::Context&, std::size_t place) const;
  /// A block's forward, from the previous block's output.
  void forward(const ops::Context&, std::size_t slot, std::size_t place, const Sequences&,
               const typename Block<T>::Attend&, const BlockDropout&) const;
  /// Final norm of a pass; the result (N, D).
  Matrix<const T> finish(const ops::Context&, std::size_t slot, std::size_t pass,
                         const Sequences&) const;
  /// A step over the embedded rows, with run(place) for each block; the result (N, D). A recursive
  /// model takes several, counted from 0.
  Matrix<const T> advance(const ops::Context&, std::size_t slot, std::size_t step, const Sequences&,
                          const std::function<void(std::size_t place)>& run) const;
  /// Logits (M, V) of finished rows (M, D), the same on all ranks of the replica, so that all
  /// sample the same tokens.
  void logits_of(const ops::Context& context, Matrix<const T> rows, Matrix<T> result) const {
    head.logits_of(context, common.links, rows, result);
  }

  const TransformerOptions options;
  const Dimensions size;
  const std::size_t first_layer;                         // index of this stage's first
  const std::shared_ptr<FullSharding<T>> full_sharding;  // null unless fully sharded
  Common<T> common;
  Block<T> block;
  Norm<T> norm;
  Gain<T> final_norm;
  Embedding<T> embedding;
  Head<T> head;
  Recursion<T> recursion;
  // Workspace of training and losses.
  Matrix<T> dstream;          // (N, D) gradient of the residual stream
  Matrix<T> dfinished;        // (N, D)
  Matrix<T> picked, dpicked;  // (M, D), only where not all rows are scored

 private:
  void allocate_training(Arena& arena);
  void allocate_evaluation(Arena& arena);
  void carve_workspace(Arena& arena);
  void allocate_workspace(Arena& arena, const deck::Model& model);
  std::size_t head_rows() const;
  std::size_t at(std::size_t slot, std::size_t place) const { return slot * places() + place; }

  std::vector<typename Block<T>::Parameters> layers_;
  // In training, per micro-batch in flight: saved_, without recomputation, and inputs_ per place;
  // finals_ per pass.
  std::vector<typename Block<T>::Saved> saved_;
  std::vector<Matrix<T>> inputs_;  // (N, D)
  std::vector<Final> finals_;
  typename Block<T>::Saved shared_;  // for evaluation and recomputation
  Matrix<T> latent_, answer_;        // (N, D), evaluation with several passes
};

}  // namespace tern::model::detail
