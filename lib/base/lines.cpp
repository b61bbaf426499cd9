#include "base/lines.hpp"

#include <fmt/format.h>

namespace tern {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<Line> Lines::next() {
  if (rest_.empty()) return std::nullopt;
  const std::size_t end = rest_.find('\n');
  const bool ended = end != rest_.npos;
  const Line line{rest_.substr(0, end), ++number_, ended};
  rest_.remove_prefix(ended ? end + 1 : rest_.size());
  return line;
}

LineReader::LineReader(const std::filesystem::path& path, std::string_view remedy)
    : file_(std::make_shared<const MappedFile>(path, remedy)), lines_(file_->text()) {}

std::optional<Line> LineReader::next() { return lines_.next(); }

std::string LineReader::place(const Line& line) const {
  return fmt::format("{}:{}", file_->path().string(), line.number);
}

bool holds_json_lines(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".jsonl" || ending == ".ndjson";
}

std::vector<std::string_view> trimmed_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const Line& line : Lines(text))
    if (!line.blank()) lines.push_back(trimmed(line.text));
  return lines;
}

}  // namespace tern
