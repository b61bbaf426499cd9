/// Conversion between Transformers' config.json and &model.
#pragma once
#include <filesystem>
#include <string>

#include "transformers/detail/family.hpp"
#include "transformers/directory.hpp"

namespace tern::transformers::detail {

struct Config {
  const Family* family;
  deck::Model model;
};

/// Throws UserError naming the file and every missing or unsupported setting.
Config read_config(const std::filesystem::path& file);

/// The model that a config.json of the family describes: its own settings and those of all families.
deck::Model read_model(const Family& family, Settings& settings);
/// The settings that describe the model.
Json settings_of(const Family& family, const deck::Model& model);

/// config.json of a model without a directory to copy it from.
std::string config_text(const Family& family, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens);
/// The config.json of the directory that the model came from, corrected if `own_head` (embeddings
/// not tied), `float32` (all weights are float32) or the tokens were trained.
std::string config_like(const std::string& original, bool own_head, bool float32,
                        const TransformersTokens& tokens);
std::string generation_config_text(const TransformersTokens& tokens);
/// The generation_config.json that the model came with, or an empty text, with the end tokens.
std::string generation_config_like(const std::string& original, const TransformersTokens& tokens);

}  // namespace tern::transformers::detail
