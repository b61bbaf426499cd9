/// Head of a transformer: logits and losses from finished rows, in chunks of rows. If tensor ranks
/// divide the vocabulary, each has its columns of the logits, and ranks exchange four numbers per
/// row (ops/vocabulary.hpp). In a pipeline only the last stage computes.
#pragma once
#include "block/model_parallel.hpp"
#include "ops/ops.hpp"
#include "parameters/binder.hpp"
#include "parameters/declaration.hpp"

namespace tern::model::detail {

/// Final norm and head; a tied head is declared by the embedding.
Declaration declare_head(const deck::Model& model);

template <class T>
struct Head {
  using A = Accumulate<T>;

  static Linear<T> bind(const deck::Model&, const Binder<T>&);
  /// Buffers in which tensor ranks combine a chunk of `rows` logits.
  void request_exchange(Arena&, std::size_t rows, std::size_t ranks, std::size_t vocabulary,
                        bool training);

  Linear<T> map;        // (W, D), empty except on the last stage
  std::size_t first;    // first of this rank's W tokens
  Matrix<T> logits;     // (C, W)
  Tensor3<A> figures;   // (ranks, C, row_figures), if the vocabulary is divided
  Vector<A> lse;        // (C), likewise
  Vector<T> gathered;   // (ranks x C x W) in evaluation, likewise
  ops::HeadFp8<T> fp8;  // in training, unless the vocabulary is divided

  bool divided(const ModelParallel<T>& links) const { return links.share().tensors > 1; }

  /// As ops::head_loss_forward. Every rank of the replica gets losses and best.
  void loss(const ops::Context&, const ModelParallel<T>&, const ops::HeadOptions&,
            Matrix<const T> x, Vector<const std::int32_t> targets, Vector<A> losses,
            Vector<std::int32_t> best) const;
  /// As ops::head_loss_backward; on the last stage. dx is summed over tensor ranks.
  void loss_backward(const ops::Context&, const ModelParallel<T>&, const ops::HeadOptions&,
                     Matrix<const T> x, Vector<const std::int32_t> targets, Vector<const A> weights,
                     Vector<A> losses, Matrix<T> dx) const;
  /// result (M, V) of rows (M, D), on the ranks of the last stage.
  void logits_of(const ops::Context&, const ModelParallel<T>&, Matrix<const T> rows,
                 Matrix<T> result) const;

 private:
  /// body(first row, rows, their logits) after each chunk's losses.
  template <class Body>
  void for_each_chunk(const ops::Context&, const ModelParallel<T>&, const ops::HeadOptions&,
                      Matrix<const T> x, Vector<const std::int32_t> targets, Vector<A> losses,
                      Vector<std::int32_t> best, const Body& body) const;
};

}  // namespace tern::model::detail
