/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/loss/embedding.hpp"
#include "ops/loss/loss.hpp"
#include "ops/loss/vocabulary.hpp"

namespace tern::ops {

template <class T>
void embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                       Matrix<const T> table, Matrix<const T> positions,
                       std::size_t tokens_per_sequence, int first, Matrix<T> x) {
  run(context, EmbeddingForward<T>{tokens, table, positions, tokens_per_sequence, first, x});
}
template <class T>
void embedding_add(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x) {
  run(context, EmbeddingAdd<T>{rows, table, x});
}
template <class T>
void embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions) {
  run(context, EmbeddingBackward<T>{tokens, order, dx, tokens_per_sequence, dtable, dpositions});
}
template <class T>
void head_loss_forward(const Context& context, const HeadLossForward<T>& call) {
  run(context, call);
}
template <class T>
void gather_rows(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> from,
                 Matrix<T> to) {
  run(context, GatherRows<T>{rows, from, to});
}
template <class T>
void scatter_rows(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to) {
  run(context, ScatterRows<T>{rows, from, to});
}
template <class T>
void argmax_rows(const Context& context, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best) {
  run(context, ArgmaxRows<T>{logits, vocabulary, best});
}
template <class T>
void cap_logits(const Context& context, double cap, Matrix<T> logits) {
  run(context, CapLogits<T>{cap, logits});
}
template <class T>
void head_loss_backward(const Context& context, const HeadLossBackward<T>& call) {
  run(context, call);
}
template <class A>
void improvement_weights(const Context& context, const ImprovementWeights<A>& call) {
  run(context, call);
}
template <class T>
void embedding_part_forward(const Context& context, const EmbeddingPartForward<T>& call) {
  run(context, call);
}
template <class T>
void embedding_part_backward(const Context& context, const EmbeddingPartBackward<T>& call) {
  run(context, call);
}
template <class T>
void row_parts(const Context& context, Matrix<const T> logits, std::size_t first,
               std::size_t vocabulary, Vector<const std::int32_t> targets,
               Matrix<Accumulate<T>> figures) {
  run(context, RowParts<T>{logits, first, vocabulary, targets, figures});
}
template <class A>
void combine_rows(const Context& context, Tensor3<const A> figures, double z_loss,
                  Vector<const std::int32_t> targets, Vector<A> losses, Vector<A> lse,
                  Vector<std::int32_t> best) {
  run(context, CombineRows<A>{figures, z_loss, targets, losses, lse, best});
}
template <class T>
void row_gradients(const Context& context, const HeadOptions& options, std::size_t first,
                   Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                   Vector<const Accumulate<T>> lse, Matrix<T> logits) {
  run(context, RowGradients<T>{options, first, targets, weights, lse, logits});
}
template <class T>
void join_columns(const Context& context, Tensor3<const T> parts, Matrix<T> whole) {
  run(context, JoinColumns<T>{parts, whole});
}

}  // namespace tern::ops
