/// config.json of Transformers to and from &model.
#pragma once
#include <filesystem>
#include <string>

#include "checkpoint/transformers.hpp"

namespace tern::checkpoint::detail {

struct Config {
  std::string architecture;
  deck::Model model;
};

/// Throws UserError naming the file and every setting that is missing or not supported.
Config read_config(const std::filesystem::path& file);

std::string config_text(const std::string& architecture, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens);
std::string generation_config_text(const TransformersTokens& tokens);

}  // namespace tern::checkpoint::detail
