#include "model/detail/value_embeddings.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "block/block.hpp"

namespace tern::model::detail {
namespace {

std::string table_name(std::int64_t table) {
  return fmt::format("model/value_embeddings/{}", table);
}

std::string scale_name(const std::string& at) { return at + "self_attn/value_scale"; }

/// Table of a layer; none: value_embeddings.
std::int64_t table_of(const deck::Model& m, std::int64_t layer) {
  const std::int64_t n = m.value_embeddings, last = m.layers - n;
  return layer < n ? layer : layer >= last ? layer - last : n;
}

}  // namespace

Declaration declare_value_tables(const deck::Model& m) {
  Declaration d(Stages::first);
  const auto V = static_cast<std::size_t>(m.vocabulary),
             width = static_cast<std::size_t>(m.kv_heads * m.head_dim);
  for (std::int64_t i = 0; i < m.value_embeddings; ++i)
    d.add({table_name(i) + "/weight", {V, width}, initial_embedding(m), Placement::columns});
  return d;
}

void declare_value_scale(const deck::Model& m, std::int64_t layer, const std::string& at,
                         Declaration& d) {
  if (table_of(m, layer) < m.value_embeddings)
    d.add({scale_name(at), {1}, {0.5, 0}, Placement::whole_of_heads});
}

template <class T>
ValueEmbeddings<T>::ValueEmbeddings(const deck::Model& m, const ParameterTree& tree,
                                    const Parameters<T>& parameters,
                                    const TransformerOptions& options, Arena& arena)
    : first_(0) {
  if (m.value_embeddings == 0) return;
  TERN_REQUIRE(tree.share().stages == 1 && m.inner_steps == 0,
               "value embeddings over {} stages, {} inner steps", tree.share().stages,
               m.inner_steps);
  const Binder<T> binder(tree, parameters);
  const Dimensions size(m, tree.share());
  first_ = (size.H + size.K) * size.E;
  for (std::int64_t i = 0; i < m.value_embeddings; ++i)
    tables_.push_back(binder.linear({table_name(i)}));
  for (std::int64_t l = 0; l < m.layers; ++l) {
    const std::int64_t table = table_of(m, l);
    Layer layer{static_cast<std::size_t>(table), {}, {}};
    if (table < m.value_embeddings)
      std::tie(layer.scale, layer.dscale) = binder.vector(scale_name(block_name(l)));
    layers_.push_back(layer);
  }
  if (options.training)
    partial_ =
        arena.vector<A>("value embeddings' partial sums", Term::workspace, ops::connect_partials());
}

template <class T>
void ValueEmbeddings<T>::forward(const ops::Context& context, std::size_t layer,
                                 Vector<const std::int32_t> tokens, Matrix<T> qkv) const {
  if (layers_.empty() || layers_[layer].scale.extent(0) == 0) return;
  ops::add_scaled_rows<T>(context, tokens, tables_[layers_[layer].table].weight,
                          layers_[layer].scale, qkv, first_);
}

template <class T>
void ValueEmbeddings<T>::backward(const ops::Context& context, std::size_t layer, const Rows& rows,
                                  std::size_t period, Matrix<const T> dqkv,
                                  Matrix<T> workspace) const {
  if (layers_.empty() || layers_[layer].scale.extent(0) == 0) return;
  const Layer& of = layers_[layer];
  const Linear<T>& table = tables_[of.table];
  const std::size_t N = dqkv.extent(0), width = table.weight.extent(1);
  TERN_REQUIRE(workspace.size() >= N * width, "{} elements for {} x {}", workspace.size(), N,
               width);
  const Matrix<T> drows = as_matrix(workspace.data(), N, width);
  ops::scaled_rows_backward<T>(context, {.tokens = rows.tokens,
                                         .table = table.weight,
                                         .scale = of.scale,
                                         .dfused = dqkv,
                                         .first = first_,
                                         .drows = drows,
                                         .dscale = of.dscale,
                                         .partial = partial_});
  ops::embedding_backward<T>(context, rows.tokens, rows.order, drows, period, table.dweight, {});
}

template class ValueEmbeddings<float>;
template class ValueEmbeddings<double>;
template class ValueEmbeddings<bf16>;
template class ValueEmbeddings<fp16>;

}  // namespace tern::model::detail
