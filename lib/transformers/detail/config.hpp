/// config.json of Transformers to and from &model.
#pragma once
#include <filesystem>
#include <string>

#include "transformers/directory.hpp"

namespace tern::transformers::detail {

struct Config {
  std::string architecture;
  deck::Model model;
};

/// Throws UserError naming the file and every setting that is missing or not supported.
Config read_config(const std::filesystem::path& file);

std::string config_text(const std::string& architecture, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens);
/// `original`, the config.json of the directory that a model came from, but for what is not as it
/// says: own_head: the model has a head beside its embeddings; float32: all weights are.
std::string config_like(const std::string& original, bool own_head, bool float32);
std::string generation_config_text(const TransformersTokens& tokens);

}  // namespace tern::transformers::detail
