/// Tokens of Fortran namelist syntax (Fortran 2018, 13.11), restricted to what f90nml reads
/// identically.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "namelist/errors.hpp"

namespace tern::namelist {

struct Token {
  enum Kind { group, word, string, repeat, equals, comma, left, right, slash, unknown, end };
  Kind kind = end;
  std::string text;          // group: its name; string: its value; unknown: the character
  Location location;         // first character
  std::size_t offset = 0;    // first byte
  bool glued = false;        // directly follows the previous token
  bool spans_lines = false;  // a string closed on a later line
  bool closed = true;        // false: a string without a closing quote
};

/// Drops carriage returns before line ends; replaces control characters and invalid UTF-8 with
/// blanks and reports the first of each line.
std::string clean(std::string_view text, Errors& errors);

/// Scans a cleaned text. Copies are cheap and used for lookahead.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  /// Continues at the line after the start of `token`, a string without a closing quote.
  void resume_after_line_of(const Token& token);
  /// The text from `token` on to the next blank or comma, where it continues.
  std::string take_to_blank(const Token& token);

 private:
  bool skip_blanks();  // also comments; true if there were any
  void advance();
  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void read_string(Token&);
  void read_word(Token&);

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  bool first_ = true;
};

}  // namespace tern::namelist
