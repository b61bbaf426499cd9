/// Value embeddings, as public speed runs of GPT training use them (KellerJordan/modded-nanogpt,
/// records of December 2024, after value residuals, Zhou et al. 2024, arXiv 2410.17897): with n =
/// &model value_embeddings, the values of layers i and L - n + i, i < n, become
///
///   v + s table_i[token]
///
/// with a learned scalar s per layer, initially 1/2. Tensor ranks hold the tables' columns of their
/// key-value heads.
#pragma once
#include "block/attention.hpp"
#include "model/pass.hpp"

namespace tern::model::detail {

Declaration declare_value_tables(const deck::Model& model);
/// Scalar of block `layer`; `at`: block_name().
void declare_value_scale(const deck::Model& model, std::int64_t layer, const std::string& at,
                         Declaration& d);

template <class T>
class ValueEmbeddings {
  using A = Accumulate<T>;

 public:
  ValueEmbeddings(const deck::Model& model, const ParameterTree& tree,
                  const Parameters<T>& parameters, const TransformerOptions& options, Arena& arena);

  /// Adds to the values in qkv (n, (H + 2K) E) of block `layer`, from n tokens.
  void forward(const ops::Context&, std::size_t layer, Vector<const std::int32_t> tokens,
               Matrix<T> qkv) const;
  /// Accumulates the gradients of table and scalar from that of qkv (N, (H + 2K) E). `workspace`: at
  /// least N K E elements.
  void backward(const ops::Context&, std::size_t layer, const Rows& rows, std::size_t period,
                Matrix<const T> dqkv, Matrix<T> workspace) const;

 private:
  struct Layer {
    std::size_t table;
    Vector<const T> scale;  // (1); empty: none
    Vector<A> dscale;
  };
  std::vector<Linear<T>> tables_;  // (V, K E)
  std::vector<Layer> layers_;      // empty without tables
  std::size_t first_;              // column of the values in qkv
  Vector<A> partial_;              // workspace, in training
};

}  // namespace tern::model::detail
