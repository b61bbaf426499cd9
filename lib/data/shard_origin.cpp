#include "data/shard_origin.hpp"

#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hashes.hpp"
#include "base/json.hpp"
#include "base/wildcards.hpp"

namespace tern::data {
namespace {

namespace fs = std::filesystem;

std::set<fs::path> folders_of(const std::vector<std::string>& patterns) {
  std::set<fs::path> folders;
  try {
    for (const fs::path& file : expand_wildcards(patterns, "token shard", ""))
      folders.insert(file.parent_path());
  } catch (const UserError&) {  // reported when the shards are opened
  }
  return folders;
}

std::string bytes_of(const text::Tokenizer& tokenizer, std::int32_t token) {
  try {
    return tokenizer.decode({token});
  } catch (const UserError&) {
    return {};  // an unused number
  }
}

}  // namespace

std::string fingerprint(const text::Tokenizer& tokenizer) {
  Fnv hash;
  const auto tokens = static_cast<std::int32_t>(tokenizer.vocabulary());
  for (std::int32_t token = 0; token < tokens; ++token) {
    const std::string bytes = bytes_of(tokenizer, token);
    hash.add_word(static_cast<unsigned char>(bytes.size()))
        .add(bytes);  // the size separates tokens
  }
  return fmt::format("{:016x}", hash.value());
}

bool ShardOrigin::alike(const ShardOrigin& other) const {
  return vocabulary == other.vocabulary && end_of_text == other.end_of_text &&
         (fingerprint.empty() || other.fingerprint.empty() || fingerprint == other.fingerprint);
}

std::vector<ShardOrigin> shard_origins(const std::vector<std::string>& patterns) {
  std::vector<ShardOrigin> origins;
  for (const fs::path& folder : folders_of(patterns)) {
    const fs::path file = folder / "meta.json";
    const auto meta = try_json(read_text_or_empty(file));
    if (!meta.is_object()) continue;
    try {
      origins.push_back({file, meta.at("tokenizer"), meta.at("vocabulary"), meta.at("end_of_text"),
                         meta.value("tokenizer_hash", "")});
    } catch (const nlohmann::json::exception&) {  // written by another program
    }
  }
  return origins;
}

void require_made_with(const ShardOrigin& origin, const text::Tokenizer& tokenizer,
                       const std::string& name) {
  const ShardOrigin now{
      {}, name, tokenizer.vocabulary(), tokenizer.end_of_text(), fingerprint(tokenizer)};
  if (origin.alike(now)) return;
  user_error(
      "{}: these shards were made with the tokenizer '{}' ({} tokens), but &data tokenizer = '{}' "
      "({} tokens); set tokenizer to the one that they were made with, or make them again with "
      "./prepare text --tokenizer {}",
      origin.meta.string(), origin.tokenizer, origin.vocabulary, name, now.vocabulary, name);
}

}  // namespace tern::data
