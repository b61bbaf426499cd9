/// export_tool TOKENIZER TEMPLATE FOLDER: the tokenizer as --export writes it into FOLDER, with the
/// chat template plain, chatml, qwen3 or qwen3_thinking, or none, or the tokenizer's own. For
/// compare_exports.py.
#include <iostream>

#include "text/tokenizer_export.hpp"

int main(int count, char** words) {
  if (count != 4) return 2;
  try {
    const std::string form = words[2];
    const bool thinking = form == "qwen3_thinking";
    std::optional<tern::text::ChatRules> chat;
    if (form != "none" && form != "own")
      chat = tern::text::chat_rules(thinking ? "qwen3" : form, thinking);
    std::filesystem::create_directories(words[3]);
    tern::text::export_tokenizer(words[1], {}, {chat, form == "own"}, 1024, words[3]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
