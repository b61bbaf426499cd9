#include "model/pass.hpp"

#include "model/detail/connections.hpp"
#include "model/detail/recursion.hpp"

namespace tern::model {

bool computes_scored_only(const deck::Model& model, const ModelShard& share,
                          const TransformerOptions& options) {
  return options.training && options.scored > 0 && passes_of(model) == 1 && share.last() &&
         !options.weights_later && model.experts == 0 && !detail::connects_blocks(model);
}

}  // namespace tern::model
