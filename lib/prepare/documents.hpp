/// Streams documents from text files, JSON lines, or lines of text, in order; files are mapped, not
/// read into memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern::prepare {

/// `automatic`: JSON lines for .jsonl and .ndjson files, else text. `text`: a file is one document,
/// or several separated by <|endoftext|>. `lines`: each line is a document. `jsonl`: each line is a
/// JSON object with the document in one field.
enum class InputFormat { automatic, text, lines, jsonl };

/// A document, or part of a long one: text documents beyond a few MiB are split before a space
/// between two ASCII letters, where all known pre-tokenizers split as well, so that parts can be
/// encoded in parallel.
struct DocumentPart {
  std::string_view raw;               // line of JSON, or the text
  std::shared_ptr<const void> owner;  // keeps `raw` in memory
  const std::filesystem::path* file = nullptr;
  std::size_t line = 0;        // 1-based; 0 for text
  std::uint64_t document = 0;  // index of the document, from 0
  bool last = true;            // last part of the document
  bool json = false;
};

class Documents {
 public:
  /// Throws UserError that names a missing, empty or compressed file.
  Documents(std::vector<std::filesystem::path> files, InputFormat format);
  ~Documents();

  /// Next part; nullopt at the end. Skips blank lines and empty documents.
  std::optional<DocumentPart> next();

  /// Total bytes of all files.
  std::size_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Text of a part, a view into `part` or `storage`. Throws UserError with file and line for invalid
/// JSON and for a missing or non-string `field`.
std::string_view text_of(const DocumentPart& part, const std::string& field, std::string& storage);

}  // namespace tern::prepare
