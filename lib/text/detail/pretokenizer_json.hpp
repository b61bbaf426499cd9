/// The parts of a tokenizer.json that change or cut the text.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// `node`: the value of "normalizer". NFC or none; others are a UserError naming them.
void read_normalizer(const nlohmann::json& node, BpeDescription& description);

/// `node`: the value of "pre_tokenizer": ByteLevel, Split (Isolated, or Removed and inverted),
/// Digits, or a Sequence of these that contains ByteLevel; others are a UserError naming them.
void read_pretokenizer(const nlohmann::json& node, BpeDescription& description);

}  // namespace tern::text::detail
