#include "data/skeleton.hpp"

#include "base/lines.hpp"

namespace tern::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// End of the number that starts at `i`.
std::size_t number_end(std::string_view text, std::size_t i) {
  const auto digit_at = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  while (digit_at(i) || (i < text.size() && (text[i] == ',' || text[i] == '.') && digit_at(i + 1)))
    ++i;
  return i;
}

/// The line with `_` for numbers and runs of blanks squeezed to one space.
std::string blanked(std::string_view line) {
  std::string plan;
  for (std::size_t i = 0; i < line.size();) {
    if (is_digit(line[i])) {
      plan += '_';
      i = number_end(line, i);
    } else if (is_blank(line[i])) {
      if (plan.empty() || plan.back() != ' ') plan += ' ';
      ++i;
    } else {
      plan += line[i++];
    }
  }
  return plan;
}

}  // namespace

std::string without_notes(std::string_view text) {
  std::string kept;
  while (true) {
    const std::size_t open = text.find("<<");
    const std::size_t close = open == text.npos ? text.npos : text.find(">>", open);
    if (close == text.npos) return kept += text;
    kept += text.substr(0, open);
    text.remove_prefix(close + 2);
  }
}

std::string skeleton(std::string_view solution) {
  const std::string text = without_notes(solution);
  std::string plan;
  for (const std::string_view line : trimmed_lines(text)) {
    if (line.starts_with("####")) continue;
    if (!plan.empty()) plan += '\n';
    plan += blanked(line);
  }
  return plan;
}

}  // namespace tern::data
