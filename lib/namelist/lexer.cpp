#include "namelist/lexer.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace tern::namelist {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-' || c == '%';
}
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n') || c == 0x7F;
}

}  // namespace

std::string clean(std::string_view text, Errors& errors) {
  std::string result;
  result.reserve(text.size());
  int line = 1, column = 1, reported_line = 0;
  for (std::size_t at = 0; at < text.size(); ++column) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++at;
    std::size_t length = utf8_length(text.substr(at));
    const bool bad = length == 0 || is_control(text[at]);
    if (bad && line != reported_line) {
      reported_line = line;
      errors.add({line, column},
                 fmt::format("byte 0x{:02x} is {}; remove it (decks are UTF-8 text)",
                             static_cast<unsigned char>(text[at]),
                             length == 0 ? "not valid UTF-8" : "a control character"));
    }
    if (length == 0) length = 1;
    if (bad)
      result += ' ';
    else
      result += text.substr(at, length);
    if (text[at] == '\n') ++line, column = 0;
    at += length;
  }
  return result;
}

void Lexer::advance() {
  const char c = text_[at_++];
  if (c == '\n')
    ++line_, column_ = 1;
  else if (!is_continuation(c))
    ++column_;
}

bool Lexer::skip_blanks() {
  const std::size_t start = at_;
  for (;;) {
    const char c = current();
    if (at_ < text_.size() && (c == ' ' || c == '\t' || c == '\n'))
      advance();
    else if (c == '!')
      while (at_ < text_.size() && current() != '\n') advance();
    else
      return at_ != start;
  }
}

void Lexer::read_string(Token& token) {
  const char quote = current();
  token.kind = Token::string;
  advance();
  while (at_ < text_.size()) {
    if (current() == quote) {
      advance();
      if (current() != quote) {
        token.spans_lines = line_ != token.location.line;
        return;
      }
    }
    token.text += current();
    advance();
  }
  token.closed = false;
}

void Lexer::read_word(Token& token) {
  token.kind = Token::word;
  bool digits_only = true;
  while (is_word(current())) {
    digits_only = digits_only && is_digit(current());
    token.text += current();
    advance();
  }
  if (digits_only && current() == '*') {
    token.kind = Token::repeat;
    advance();
  }
}

Token Lexer::next() {
  const bool blanks = skip_blanks();
  Token token;
  token.location = {line_, column_};
  token.offset = at_;
  token.glued = !blanks && !first_;
  first_ = false;
  if (at_ >= text_.size()) return token;
  const char c = current();
  if (c == '\'' || c == '"') {
    read_string(token);
  } else if (c == '&') {
    advance();
    read_word(token);
    token.kind = Token::group;
  } else if (is_word(c)) {
    read_word(token);
  } else {
    static constexpr std::string_view marks = "=,()/";
    static constexpr Token::Kind kinds[] = {Token::equals, Token::comma, Token::left, Token::right,
                                            Token::slash};
    const std::size_t mark = marks.find(c);
    token.kind = mark == std::string_view::npos ? Token::unknown : kinds[mark];
    do {
      token.text += current();
      advance();
    } while (at_ < text_.size() && is_continuation(current()));
  }
  return token;
}

std::string Lexer::take_to_blank(const Token& token) {
  at_ = token.offset;
  line_ = token.location.line;
  column_ = token.location.column;
  while (at_ < text_.size() && std::string_view(" \t\n,").find(current()) == std::string::npos)
    advance();
  return std::string(text_.substr(token.offset, at_ - token.offset));
}

void Lexer::resume_after_line_of(const Token& token) {
  at_ = token.offset;
  line_ = token.location.line;
  while (at_ < text_.size() && line_ == token.location.line) advance();
}

}  // namespace tern::namelist
