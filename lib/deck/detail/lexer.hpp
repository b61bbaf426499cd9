/// Tokens of Fortran namelist syntax (Fortran 2018, 13.11), restricted to what f90nml reads to the
/// same values.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "deck/detail/errors.hpp"

namespace tern::deck::detail {

struct Token {
  enum Kind { group, word, string, repeat, equals, comma, left, right, slash, unknown, end };
  Kind kind = end;
  std::string text;          // group: its name; string: its value; unknown: the character
  Place place;               // of the first character
  std::size_t offset = 0;    // of the first byte
  bool glued = false;        // nothing stands between this token and the one before
  bool spans_lines = false;  // a string closed on a later line
  bool closed = true;        // false: a string whose quote never comes
};

/// Replaces carriage returns before line ends, control characters and bytes that are not UTF-8, the
/// latter two with a mistake each (the first of each line).
std::string clean(std::string_view text, Errors& errors);

/// Walks over a cleaned text. Copies are cheap and serve to look ahead.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  /// Goes on at the line after the one `token` begins in, for a string that lost its quote.
  void resume_after_line_of(const Token& token);

 private:
  bool skip_blanks();  // and comments; true if there were any
  void advance();
  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void read_string(Token&);
  void read_word(Token&);

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  bool first_ = true;
};

}  // namespace tern::deck::detail
