/// Embeddings of tokens and, as the deck says, of learned positions and levels. On the first stage;
/// tensor ranks hold rows of the token table, and their parts are summed.
#pragma once
#include "block/model_parallel.hpp"
#include "model/pass.hpp"
#include "parameters/binder.hpp"
#include "parameters/declaration.hpp"

namespace tern::model::detail {

Declaration declare_embedding(const deck::Model& model);

template <class T>
struct Embedding {
  Linear<T> tokens, positions, levels;  // (W, D), (context, D), (levels, D) or empty
  std::size_t first = 0;                // first of this rank's W tokens

  static Embedding bind(const deck::Model&, const Binder<T>&, const ModelShard&);

  /// to (n, D) from n tokens, in sequences of `period` tokens that start at position `at`.
  void forward(const ops::Context&, const ModelParallel<T>&, Vector<const std::int32_t> tokens,
               std::size_t period, int at, Vector<const std::int32_t> levels, Matrix<T> to) const;
  /// Accumulates gradients from dstream (N, D), sequences of `period` rows.
  void backward(const ops::Context&, const ModelParallel<T>&, const Rows& rows, std::size_t period,
                Matrix<const T> dstream) const;
};

}  // namespace tern::model::detail
