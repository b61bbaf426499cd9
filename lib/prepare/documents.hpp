/// The documents of text files, JSON lines, or lines of text, in order and without reading a file
/// into memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern::prepare {

/// `automatic`: JSON lines for files that end in .jsonl or .ndjson, else text. `text`: a file is
/// one document, or several with <|endoftext|> between them. `lines`: each line is a document.
/// `jsonl`: each line is a JSON object that holds a document in one field.
enum class InputFormat { automatic, text, lines, jsonl };

/// A document, or a part of a long one: text documents beyond a few MiB are cut before a space
/// between two ASCII letters, where every known pre-tokenizer cuts too, so that their parts can be
/// encoded in parallel.
struct DocumentPart {
  std::string_view raw;               // a line of JSON, or the text itself
  std::shared_ptr<const void> owner;  // keeps `raw` in memory
  const std::filesystem::path* file = nullptr;
  std::size_t line = 0;        // 1-based; 0 for text
  std::uint64_t document = 0;  // number of the document, from 0
  bool last = true;            // the document ends here
  bool json = false;
};

class Documents {
 public:
  /// Throws UserError for a file that is missing, empty or compressed, naming it.
  Documents(std::vector<std::filesystem::path> files, InputFormat format);
  ~Documents();

  /// The next part; nothing at the end. Blank lines and empty documents are left out.
  std::optional<DocumentPart> next();

  /// Bytes of all files.
  std::size_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The text of a part; `storage` may hold it. Throws UserError with file and line for JSON that
/// cannot be read and for a missing or non-string `field`.
std::string_view text_of(const DocumentPart& part, const std::string& field, std::string& storage);

}  // namespace tern::prepare
