/// Loading and exporting parameters, outside of training.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "base/log.hpp"
#include "deck/loaded_model.hpp"
#include "ops/core/context.hpp"
#include "parameters/parameters.hpp"
#include "transformers/directory.hpp"

namespace tern::weights {

/// Model of the Transformers directory at `load`, for deck::read(), and the directory as tokenizer
/// if it holds a tokenizer.json. Empty if `load` is no such directory.
std::optional<deck::LoadedModel> model_at(const std::string& load);

/// Source of weights for evaluation, generation and export: &generation checkpoint, else the run's
/// own checkpoints, else &model load. Warns, if `log` is given, where 'best' is not what best.txt
/// names. Throws UserError if there is none.
std::string weights_source(const deck::Deck& deck, Log* log = nullptr);

/// End tokens (transformers/end_tokens.hpp) of the Transformers directory that &generation checkpoint
/// names, or else of the one that the run started from; empty if it started from none, or only with
/// what matched.
std::vector<std::int64_t> end_tokens(const deck::Deck& deck);

/// What load_weights() requires and takes.
enum class Tensors { all, matching };

/// Fills this rank's part of the parameters from a Transformers directory (with config.json), a
/// checkpoint.h5 or its folder, or the newest checkpoint below a run's folder, through a few MiB of
/// host memory. Collective over a replica. Throws UserError for another model: other shapes or, if
/// the checkpoint stores its deck, another &model except for its context. With Tensors::matching,
/// parameters that another model has with the same name and shape are filled; the log lists the
/// rest (matching.hpp).
template <class T>
void load_weights(const ops::Context& context, const model::ParameterTree& tree,
                  const deck::Model& model, model::Parameters<T>& parameters,
                  const std::filesystem::path& from, Log& log, Tensors which = Tensors::all);

/// Throws what load_weights() would for the files at `from`: headers are read, weights are not.
/// Local.
void check_weights(const deck::Model& model, const std::filesystem::path& from, Log& log,
                   Tensors which = Tensors::all);

/// Copies the weights at `from` (as in load_weights) to a Transformers directory, on the host,
/// through a few MiB of memory. If `from` or &model load is such a directory, its tensor types and
/// other files are kept, except for end tokens (TransformersTokens::trained); otherwise weights are
/// float32 and config.json names `tokens`. Throws UserError also for a checkpoint whose deck has
/// another chat template, if `tokens` are trained.
void export_weights(const deck::Deck& deck, const std::filesystem::path& from,
                    const std::filesystem::path& directory,
                    const transformers::TransformersTokens& tokens, Log& log);

}  // namespace tern::weights
