/// Tokenizer that token shards were made with, from the meta.json next to them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace tern::data {

/// Hash that differs between tokenizers that differ in any token: 64-bit FNV-1a of all tokens'
/// bytes, in hexadecimal. A few hundred ns per token.
std::string fingerprint(const text::Tokenizer& tokenizer);

struct ShardOrigin {
  std::filesystem::path meta;  // the meta.json
  std::string tokenizer;       // as named when the shards were made
  std::size_t vocabulary = 0;
  std::int32_t end_of_text = -1;
  std::string fingerprint;  // empty: made by an earlier version

  bool alike(const ShardOrigin& other) const;
};

/// One per folder that holds shards and a meta.json of ./prepare; other folders are skipped.
std::vector<ShardOrigin> shard_origins(const std::vector<std::string>& patterns);

/// Throws UserError naming both tokenizers if the shards were made with another one than
/// `tokenizer`, which the deck calls `name`.
void require_made_with(const ShardOrigin& origin, const text::Tokenizer& tokenizer,
                       const std::string& name);

}  // namespace tern::data
