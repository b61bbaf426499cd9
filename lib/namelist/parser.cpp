#include "namelist/parser.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/utf8.hpp"

namespace tern::namelist {
namespace {

constexpr std::size_t max_values = 10000;  // per name; guards against 999999999*1

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

bool is_value(const Token& token) {
  return token.kind == Token::word || token.kind == Token::string || token.kind == Token::repeat;
}

/// Code point of a UTF-8 character.
std::uint32_t code_point(std::string_view character) {
  const char* at = character.data();
  return next_code_point(at);
}

/// Name of a character that editors show as a blank or not at all; null for visible ones.
const char* invisible(std::uint32_t code) {
  if (code == 0xFEFF) return "a byte-order mark";
  if (code == 0xA0 || code == 0x202F || code == 0x2007) return "a no-break space";
  if ((code >= 0x2000 && code <= 0x200A) || code == 0x1680 || code == 0x205F || code == 0x3000)
    return "a wide or narrow space";
  if (code == 0x2028 || code == 0x2029) return "a line separator";
  if (code == 0xAD || (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
      (code >= 0x2060 && code <= 0x206F))
    return "a zero-width character";
  return nullptr;
}

const char* invisible(const Token& token) {
  return token.kind == Token::unknown ? invisible(code_point(token.text)) : nullptr;
}

/// Remedy for a misplaced token.
std::string remedy(const Token& token, const char* otherwise) {
  if (!invisible(token)) return otherwise;
  return code_point(token.text) == 0xFEFF ? "save the deck as UTF-8 without it"
                                          : "type a plain blank in its place";
}

std::string describe(const Token& token) {
  if (const char* name = invisible(token))
    return fmt::format("{} (U+{:04X})", name, code_point(token.text));
  switch (token.kind) {
    case Token::end:
      return "the end of the deck";
    case Token::group:
      return "'&" + token.text + "'";
    case Token::string:
      return "a string";
    case Token::repeat:
      return "'" + token.text + "*'";
    default:
      return "'" + token.text + "'";
  }
}

class Parser {
 public:
  Parser(std::string_view text, const MayHoldLines& may_hold_lines, Errors& errors,
         int override_index = -1)
      : lexer_(text), may_hold_lines_(may_hold_lines), errors_(errors), override_(override_index) {
    advance();
  }

  ParsedDeck deck() {
    while (token_.kind != Token::end) {
      if (token_.kind == Token::group)
        group();
      else
        stray();
    }
    return std::move(result_);
  }

  bool values_alone(const std::string& name, std::vector<Value>& values) {
    Assignment assignment;
    assignment.name = name;
    if (!values_of(assignment)) return false;
    if (token_.kind != Token::end)
      return fail(name,
                  fmt::format("{} after the value; quote strings that hold it", describe(token_)));
    values = std::move(assignment.values);
    return true;
  }

 private:
  void advance() {
    token_ = lexer_.next();
    token_.location.override_index = override_;
  }
  Token peek() const {
    Lexer ahead = lexer_;
    return ahead.next();
  }
  bool starts_assignment() const {
    if (token_.kind != Token::word || !is_letter(token_.text[0])) return false;
    const Token following = peek();
    return following.kind == Token::equals || following.kind == Token::left;
  }

  /// Whether a path without quotes begins here: "data/train.bin" or "/data", but not the '/' that
  /// ends a group.
  bool starts_path() const {
    if (override_ >= 0) return false;
    Lexer ahead = lexer_;
    Token slash = token_;
    if (token_.kind == Token::word) slash = ahead.next();
    if (slash.kind != Token::slash || (token_.kind == Token::word && !slash.glued)) return false;
    const Token rest = ahead.next();
    return rest.glued && (rest.kind == Token::word || rest.kind == Token::unknown);
  }

  /// Reports the path that begins here, and continues after it.
  bool fail_at_path(const std::string& name) {
    const Token start = token_;
    const std::string path = lexer_.take_to_blank(start);
    errors_.add(start.location,
                fmt::format("{}: a path without quotes; quote it: '{}'", name, path));
    advance();
    return false;
  }

  /// Reports a mistake at the current token; returns false, for callers to return.
  bool fail(const std::string& name, const std::string& text) {
    errors_.add(token_.location, name + ": " + text);
    return false;
  }

  void stray() {
    errors_.add(token_.location,
                fmt::format("{} is outside of a group; {}", describe(token_),
                            remedy(token_, "open one with '&name' and close it with '/'")));
    while (token_.kind != Token::group && token_.kind != Token::end) skip_token();
  }

  /// Skips a token during recovery; a string without a closing quote ends with its line.
  void skip_token() {
    if (token_.kind == Token::string && (token_.spans_lines || !token_.closed))
      lexer_.resume_after_line_of(token_);
    advance();
  }

  void group() {
    const Location location = token_.location;
    const std::string name = lower(token_.text);
    const bool named = is_name(name);
    if (named)
      result_.groups.push_back({name, location});
    else
      fail("&" + token_.text, "not a group name; a letter must follow the '&'");
    advance();
    if (!named) skip_to_assignment();
    for (;;) {
      if (token_.kind == Token::slash) return advance();
      if (token_.kind == Token::end || token_.kind == Token::group) {
        errors_.add(location, fmt::format("{}: the group is not closed before {}; end it with '/'",
                                          name, describe(token_)));
        return;
      }
      if (!assignment(name)) skip_to_assignment();
    }
  }

  void skip_to_assignment() {
    while (token_.kind != Token::slash && token_.kind != Token::group &&
           token_.kind != Token::end && !starts_assignment())
      skip_token();
  }

  bool assignment(const std::string& group_name) {
    Assignment result;
    result.group = group_name;
    result.location = token_.location;
    const std::string text = token_.text;
    if (token_.kind != Token::word) {
      const bool failed =
          fail(group_name, fmt::format("{} where a name is expected; {}", describe(token_),
                                       remedy(token_, "use name = value")));
      skip_token();
      return failed;
    }
    result.name = lower(text);
    const std::string full = group_name + "." + result.name;
    if (!is_name(result.name)) {
      fail(full, "not a name; use name = value, with strings in quotes");
      advance();
      return false;
    }
    advance();
    const bool read = indexed_values(full, result);
    (read ? result_.assignments : result_.failed).push_back(std::move(result));
    return read;
  }

  /// After a name: optional index, '=', values.
  bool indexed_values(const std::string& full, Assignment& result) {
    if (token_.kind == Token::left && !index(full, result)) return false;
    if (token_.kind != Token::equals)
      return fail(full, invisible(token_) ? fmt::format("{} after the name; {}", describe(token_),
                                                        remedy(token_, ""))
                                          : "no '=' after the name; use name = value");
    advance();
    return values_of(result);
  }

  bool index(const std::string& full, Assignment& result) {
    advance();
    const std::string& digits = token_.text;
    const char* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, result.index);
    if (token_.kind != Token::word || error != std::errc() || rest != end || result.index < 1)
      return fail(full, "the index is not a positive integer; use name(2) = value");
    advance();
    if (token_.kind != Token::right)
      return fail(full, "no ')' after the index; use name(2) = value");
    advance();
    return true;
  }

  /// The list after '='; stops at the first token that cannot belong to it.
  bool values_of(Assignment& result) {
    const std::string full = result.group.empty() ? result.name : result.group + "." + result.name;
    bool comma = false;
    if (starts_path()) return fail_at_path(full);
    while (is_value(token_) && !(token_.kind == Token::word && starts_assignment())) {
      if (!result.values.empty() && !comma && token_.glued)
        return fail(full, fmt::format("no blank before {}; separate values with blanks or commas",
                                      describe(token_)));
      if (!value(full, result)) return false;
      comma = token_.kind == Token::comma;
      if (comma) advance();
      if (starts_path()) return fail_at_path(full);
    }
    if (token_.kind == Token::comma)
      return fail(full, "a comma without a value before it; remove it or add the value");
    if (token_.kind == Token::equals || token_.kind == Token::left || token_.kind == Token::right ||
        token_.kind == Token::unknown)
      return fail(full, fmt::format("{} is not allowed here; {}", describe(token_),
                                    remedy(token_, "put strings in quotes")));
    if (result.values.empty()) return fail(full, "no value after '='; add one or remove the name");
    if (token_.kind == Token::word && token_.glued && !comma)
      return fail(full, fmt::format("no blank before {}; separate values with blanks or commas",
                                    describe(token_)));
    return true;
  }

  bool value(const std::string& full, Assignment& result) {
    std::size_t count = 1;
    if (token_.kind == Token::repeat) {
      const std::string digits = token_.text;
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (parsed.ec != std::errc() || count < 1 || count > max_values)
        return fail(full,
                    fmt::format("the repeat count {} is not within 1 to {}", digits, max_values));
      advance();
      if (!token_.glued || (token_.kind != Token::word && token_.kind != Token::string))
        return fail(full, "no value after the repeat count; use e.g. 3*0.5, without blanks");
    }
    if (token_.kind == Token::string && !string_is_whole(full, result)) return false;
    if (result.values.size() + count > max_values)
      return fail(full, fmt::format("more than {} values", max_values));
    result.values.insert(result.values.end(), count,
                         {token_.text, token_.kind == Token::string, token_.location});
    advance();
    return true;
  }

  bool string_is_whole(const std::string& full, const Assignment& result) {
    const bool lines_allowed = may_hold_lines_(result.group, result.name);
    if (token_.closed && (!token_.spans_lines || lines_allowed)) return true;
    fail(full, "the string is not closed on its line; add the closing quote");
    skip_token();
    return false;
  }

  Lexer lexer_;
  Token token_;
  const MayHoldLines& may_hold_lines_;
  Errors& errors_;
  int override_;
  ParsedDeck result_;
};

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

ParsedDeck parse_deck(std::string_view text, const MayHoldLines& may_hold_lines, Errors& errors) {
  return Parser(text, may_hold_lines, errors).deck();
}

bool parse_values(std::string_view text, const std::string& name, bool lines, int override_index,
                  std::vector<Value>& values, Errors& errors) {
  const MayHoldLines may_hold_lines = [&](const auto&, const auto&) { return lines; };
  return Parser(text, may_hold_lines, errors, override_index).values_alone(name, values);
}

}  // namespace tern::namelist
