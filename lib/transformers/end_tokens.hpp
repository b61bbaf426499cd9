/// End tokens of a Transformers directory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tern::transformers {

/// Tokens at which Transformers' generate() stops: "eos_token_id", a number or a list of numbers, of
/// generation_config.json, or of config.json if the directory has no such file. Empty if it is absent
/// or null. Throws UserError if a file is not a JSON object or the value is of another type.
std::vector<std::int64_t> end_tokens(const std::filesystem::path& directory);

}  // namespace tern::transformers
