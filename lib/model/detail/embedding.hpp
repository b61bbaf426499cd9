/// Embeddings: of tokens, and by the deck of learned positions and of levels. On the first stage;
/// tensor ranks hold rows of the tokens' and give their parts of the sum.
#pragma once
#include "model/declaration.hpp"
#include "model/detail/binder.hpp"
#include "model/detail/links.hpp"
#include "model/pass.hpp"

namespace tern::model::detail {

Declaration declare_embedding(const deck::Model& model);

template <class T>
struct Embedding {
  Linear<T> tokens, positions, levels;  // (W, D), (context, D), (levels, D) or empty
  std::size_t first = 0;                // of the W tokens that are here

  static Embedding bind(const deck::Model&, const Binder<T>&, const Share&);

  /// to (n, D) from n tokens; a sequence has `period` of them, and the first of each stands at
  /// position `at`.
  void forward(const ops::Context&, const Links<T>&, Vector<const std::int32_t> tokens,
               std::size_t period, int at, Vector<const std::int32_t> levels, Matrix<T> to) const;
  /// Adds to the gradients; dstream (N, D), of sequences of `period` rows.
  void backward(const ops::Context&, const Links<T>&, const Rows& rows, std::size_t period,
                Matrix<const T> dstream) const;
};

}  // namespace tern::model::detail
