/// The part of a tokenizer.json that adds tokens around a text.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// `node`: the value of "post_processor": null, ByteLevel (which changes no token),
/// TemplateProcessing as far as it is about one text, or a Sequence with at most one of the latter;
/// others are a UserError naming them. After the vocabulary has been read.
void read_postprocessor(const nlohmann::json& node, BpeDescription& description);

}  // namespace tern::text::detail
