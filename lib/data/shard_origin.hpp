/// What token shards were made with, as the meta.json beside them says.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace tern::data {

/// Differs between tokenizers that differ in any token: 64-bit FNV-1a of all their bytes, in
/// hexadecimal. A few hundred ns a token.
std::string fingerprint(const text::Tokenizer& tokenizer);

struct ShardOrigin {
  std::filesystem::path meta;  // the file
  std::string tokenizer;       // as it was named then
  std::size_t vocabulary = 0;
  std::int32_t end_of_text = -1;
  std::string fingerprint;  // empty in files of earlier versions

  bool alike(const ShardOrigin& other) const;
};

/// One for each folder that holds shards and a meta.json of ./prepare; other folders tell nothing.
std::vector<ShardOrigin> shard_origins(const std::vector<std::string>& patterns);

/// UserError that names both, if the shards were made with another tokenizer than this one, which
/// the deck calls `name`.
void require_made_with(const ShardOrigin& origin, const text::Tokenizer& tokenizer,
                       const std::string& name);

}  // namespace tern::data
