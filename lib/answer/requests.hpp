/// Files of requests, and the prompt template.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace tern::answer {

struct ChatRequest {
  std::string text;
  nlohmann::ordered_json id;     // string or number: the file's, or the line number
  nlohmann::ordered_json label;  // string or number: the correct answer; null if not given
};

/// Requests of a file: one text per line, or in .jsonl and .ndjson one object {"text", "id",
/// "label"} per line, of which only "text" is required. Blank lines are skipped. Throws UserError
/// with file and line, also for duplicate ids.
std::vector<ChatRequest> read_requests(const std::filesystem::path& file);

/// Text of an id or a label.
std::string plain_text(const nlohmann::ordered_json& value);

/// A prompt with {text} in place of a request's text.
class PromptTemplate {
 public:
  /// The text only.
  PromptTemplate() : parts_(2) {}
  /// Reads a file, without the newline at its end. Throws UserError if it lacks {text} or is not
  /// UTF-8.
  explicit PromptTemplate(const std::filesystem::path& file);

  std::string fill(std::string_view text) const;

 private:
  std::vector<std::string> parts_;  // between occurrences of {text}
};

}  // namespace tern::answer
