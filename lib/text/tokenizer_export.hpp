/// Export of a tokenizer to Hugging Face Transformers.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "text/chat.hpp"

namespace tern::text {

/// Jinja source of a chat template for apply_chat_template, equal to generation_prompt() and
/// written() for messages without tools.
std::string jinja_of(const ChatRules& rules);

/// Writes the files that AutoTokenizer loads into `directory`: tokenizer.json, copied or made from
/// GPT-2's two files or from bytes; tokenizer_config.json; and the template if `chat` is given. A
/// tokenizer_config.json or chat_template.jinja next to the tokenizer is copied instead. `where`,
/// `search`: as for open_tokenizer(); `longest`: context of the model. Throws UserError.
void export_tokenizer(const std::string& where, const std::vector<std::filesystem::path>& search,
                      const std::optional<ChatRules>& chat, std::int64_t longest,
                      const std::filesystem::path& directory);

}  // namespace tern::text
