/// Export of a tokenizer to Hugging Face Transformers.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "text/chat.hpp"

namespace tern::text {

/// Jinja source of a chat template for apply_chat_template, equal to generation_prompt() and
/// written() for messages without tools. `prefix`: names of the tokens that precede a text; only
/// plain writes them.
std::string jinja_of(const ChatRules& rules, const std::string& prefix = "");

/// The format of a model's texts, for the files that AutoTokenizer loads.
struct TextFormat {
  /// With a template: the model learned conversations written by it. Then chat_template.jinja and the
  /// end token are those of the template, whatever files come with the tokenizer.
  std::optional<ChatRules> chat = {};
  /// Without: whether the model knows the tokenizer's own template and end token. Else the end token
  /// is that of documents, and there is no template.
  bool tokenizers_own = false;
};

/// Writes the files that AutoTokenizer loads into `directory`: tokenizer.json, copied or made from
/// GPT-2's two files or from bytes; tokenizer_config.json, made, or copied from the tokenizer's folder
/// and corrected; and chat_template.jinja. `where`, `search`: as for open_tokenizer(); `longest`:
/// context of the model. Throws UserError.
void export_tokenizer(const std::string& where, const std::vector<std::filesystem::path>& search,
                      const TextFormat& format, std::int64_t longest,
                      const std::filesystem::path& directory);

/// Writes template and end token of `format` to a directory that already holds a tokenizer's files.
void write_format(const Tokenizer& tokenizer, const TextFormat& format,
                  const std::filesystem::path& directory);

}  // namespace tern::text
