/// Conversion between Transformers' config.json and &model.
#pragma once
#include <filesystem>
#include <string>

#include "transformers/directory.hpp"

namespace tern::transformers::detail {

struct Config {
  std::string architecture;
  deck::Model model;
};

/// Throws UserError naming the file and every missing or unsupported setting.
Config read_config(const std::filesystem::path& file);

std::string config_text(const std::string& architecture, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens);
/// The config.json of the directory that the model came from, corrected if `own_head` (embeddings
/// not tied), `float32` (all weights are float32) or the tokens were trained.
std::string config_like(const std::string& original, bool own_head, bool float32,
                        const TransformersTokens& tokens);
std::string generation_config_text(const TransformersTokens& tokens);
/// The generation_config.json that the model came with, or an empty text, with the end tokens.
std::string generation_config_like(const std::string& original, const TransformersTokens& tokens);

}  // namespace tern::transformers::detail
