/// Parameters from and to files, outside of training.
#pragma once
#include <filesystem>
#include <optional>

#include "base/log.hpp"
#include "deck/loaded_model.hpp"
#include "model/parameters.hpp"
#include "ops/context.hpp"
#include "transformers/directory.hpp"

namespace tern::weights {

/// What a Transformers directory at `load` says of its model, for deck::read(), and the directory
/// as its tokenizer if it holds a tokenizer.json; nothing where there is none.
std::optional<deck::LoadedModel> model_at(const std::string& load);

/// Where the weights of an evaluation, a generation or an export come from: &generation checkpoint,
/// else the run's own checkpoints, else &model load.
std::string weights_source(const deck::Deck& deck);

/// Fills the parameters from a Transformers directory (one with config.json), a checkpoint.h5 or
/// its folder, or the newest checkpoint below a run's folder: this rank's part of each, through a
/// few MiB of host memory. Collective over a replica. Throws UserError if it is of another model:
/// of other shapes, or, where the deck is stored with it, of another &model but for its context.
template <class T>
void load_weights(const ops::Context& context, const model::ParameterTree& tree,
                  const deck::Model& model, model::Parameters<T>& parameters,
                  const std::filesystem::path& from, Log& log);

/// Copies the weights at `from` (as for load_weights) to a Transformers directory, on the host,
/// through a few MiB of memory. If `from` is such a directory, or the deck's &model load is, the
/// types of the tensors and the files beside them are kept; else weights are float32 and the config
/// names `tokens`.
void export_weights(const deck::Deck& deck, const std::filesystem::path& from,
                    const std::filesystem::path& directory,
                    const transformers::TransformersTokens& tokens, Log& log);

}  // namespace tern::weights
