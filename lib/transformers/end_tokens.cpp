#include "transformers/end_tokens.hpp"

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace tern::transformers {

std::vector<std::int64_t> end_tokens(const std::filesystem::path& directory) {
  const auto generation = directory / "generation_config.json";
  const auto file = std::filesystem::exists(generation) ? generation : directory / "config.json";
  const auto config = try_json(read_text_or_empty(file));
  if (!config.is_object()) user_error("{}: is not a JSON object", file.string());
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return {};
  std::vector<std::int64_t> tokens;
  const auto add = [&](const nlohmann::json& token) {
    if (!token.is_number_integer())
      user_error("{}: eos_token_id = {} is not a token id or a list of token ids", file.string(),
                 found->dump().substr(0, 40));
    tokens.push_back(token.get<std::int64_t>());
  };
  if (found->is_array())
    for (const auto& token : *found) add(token);
  else
    add(*found);
  return tokens;
}

}  // namespace tern::transformers
