/// Post-processor of a tokenizer.json: tokens added around a text.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// `node`: value of "post_processor": null, ByteLevel (changes no token), TemplateProcessing (only
/// its "single" template), or a Sequence with at most one TemplateProcessing; otherwise UserError.
/// Call after the vocabulary has been read.
void read_postprocessor(const nlohmann::json& node, BpeDescription& description);

}  // namespace tern::text::detail
