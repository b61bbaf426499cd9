/// Files of requests, and the prompt around each.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace tern::answer {

struct ChatRequest {
  std::string text;
  nlohmann::ordered_json id;     // a string or a number: the file's, or the number of the line
  nlohmann::ordered_json label;  // the same: the right answer; null if the file does not tell
};

/// The requests of a file: a text a line, or, if it ends in .jsonl or .ndjson, objects {"text",
/// "id", "label"} of which only "text" is needed. Blank lines are left out. Throws UserError with
/// file and line, also for two requests of one id.
std::vector<ChatRequest> read_requests(const std::filesystem::path& file);

/// The text of an id or a label.
std::string plain_text(const nlohmann::ordered_json& value);

/// A prompt in which {text} stands for a request's text.
class PromptTemplate {
 public:
  /// The text alone.
  PromptTemplate() : parts_(2) {}
  /// Reads a file, without the new line at its end. Throws UserError if it lacks {text} or is not
  /// UTF-8.
  explicit PromptTemplate(const std::filesystem::path& file);

  std::string fill(std::string_view text) const;

 private:
  std::vector<std::string> parts_;  // between the places of the text
};

}  // namespace tern::answer
