/// The tokenizer of a model that is exported, as Hugging Face Transformers reads it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "text/chat.hpp"

namespace tern::text {

/// The template of &data chat_template in Jinja, for apply_chat_template: what generation_prompt()
/// and written() make of messages without tools.
std::string jinja_of(const ChatRules& rules);

/// Writes into `directory` what AutoTokenizer loads: tokenizer.json, copied from where the
/// tokenizer comes from or made from its two files or its bytes, and tokenizer_config.json; of a
/// model that learned to answer the chat template as well. A tokenizer_config.json or a template
/// that stands beside the tokenizer is copied instead. `where`, `search`: as for open_tokenizer();
/// `longest`: tokens that the model takes. Throws UserError.
void export_tokenizer(const std::string& where, const std::vector<std::filesystem::path>& search,
                      const std::optional<ChatRules>& chat, std::int64_t longest,
                      const std::filesystem::path& directory);

}  // namespace tern::text
