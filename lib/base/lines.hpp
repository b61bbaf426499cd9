/// Lines of texts and files, numbered as messages name them.
#pragma once
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.hpp"

namespace tern {

std::string_view trimmed(std::string_view text);

struct Line {
  std::string_view text;   // without its newline
  std::size_t number = 0;  // from 1
  bool ended = true;       // false: the last line, without a newline

  bool blank() const { return trimmed(text).empty(); }
};

/// Iterates over what source.next() returns, up to nullopt.
template <class Source>
class LineIterator {
 public:
  explicit LineIterator(Source& source) : source_(&source), line_(source.next()) {}
  const Line& operator*() const { return *line_; }
  LineIterator& operator++() { return line_ = source_->next(), *this; }
  bool operator==(std::default_sentinel_t) const { return !line_; }

 private:
  Source* source_;
  std::optional<Line> line_;
};

/// Lines of a text, which must outlive them: for (const Line& line : Lines(text)).
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  Lines(std::string&&) = delete;
  std::optional<Line> next();
  LineIterator<Lines> begin() { return LineIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

/// Lines of a file that a user names; all formats with one record per line are read with it.
class LineReader {
 public:
  /// Throws UserError as MappedFile, and adds `remedy`.
  explicit LineReader(const std::filesystem::path& path, std::string_view remedy = "");
  std::optional<Line> next();
  LineIterator<LineReader> begin() { return LineIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  /// FILE:LINE, for messages.
  std::string place(const Line& line) const;
  /// The whole file, for formats that are not of lines.
  std::string_view text() const { return file_->text(); }
  /// Keeps the text of lines in memory.
  std::shared_ptr<const void> owner() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  Lines lines_;
};

/// Whether each line of such a file is a JSON object (.jsonl, .ndjson).
bool holds_json_lines(const std::filesystem::path& path);

/// Non-blank lines, trimmed; views into `text`.
std::vector<std::string_view> trimmed_lines(std::string_view text);

}  // namespace tern
