/// Normalizer and pre-tokenizer of a tokenizer.json.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// `node`: value of "normalizer": null, NFC, or a Sequence of NFC; otherwise UserError.
void read_normalizer(const nlohmann::json& node, BpeDescription& description);

/// `node`: value of "pre_tokenizer": ByteLevel, or a Sequence of ByteLevel, Split (Isolated, or
/// Removed and inverted) and Digits that contains ByteLevel; otherwise UserError.
void read_pretokenizer(const nlohmann::json& node, BpeDescription& description);

}  // namespace tern::text::detail
