#include "model/declare.hpp"

#include "base/error.hpp"
#include "block/block.hpp"
#include "model/detail/connections.hpp"
#include "model/detail/embedding.hpp"
#include "model/detail/head.hpp"
#include "model/detail/recursion.hpp"
#include "model/detail/value_embeddings.hpp"

namespace tern::model {

Declarations declare(const deck::Model& model) {
  TERN_REQUIRE(model.kv_heads > 0 && model.head_dim > 0 && model.ffn_hidden > 0,
               "the model is not resolved: kv_heads {}, head_dim {}, ffn_hidden {}", model.kv_heads,
               model.head_dim, model.ffn_hidden);
  std::vector<Declaration> parts;
  parts.push_back(detail::declare_embedding(model));
  if (model.value_embeddings > 0) parts.push_back(detail::declare_value_tables(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    parts.emplace_back(Stages::of_layer, layer);
    const std::string at = block_name(layer);
    declare_block(model, at, parts.back());
    detail::declare_recursion_of_block(model, at, parts.back());
    detail::declare_connections(model, layer, at, parts.back());
    detail::declare_value_scale(model, layer, at, parts.back());
  }
  parts.push_back(detail::declare_head(model));
  parts.push_back(detail::declare_recursion(model));
  return {model, std::move(parts)};
}

std::vector<Divided> divided(const deck::Model& model) {
  std::vector<Divided> all = divided_of_block(model);
  all.push_back({"vocabulary", model.vocabulary});
  return all;
}

}  // namespace tern::model
