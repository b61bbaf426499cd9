/// Locations in a deck, and the list of its mistakes.
#pragma once
#include <string>
#include <tuple>
#include <vector>

namespace tern::namelist {

/// Position in the deck's text, or an override. Lines and columns (in characters) count from 1;
/// line 0 is the deck as a whole.
struct Location {
  int line = 0, column = 0;
  int override_index = -1;  // override that gave the value; -1: the deck's text

  bool operator<(const Location& other) const {
    return std::tuple(override_index, line, column) <
           std::tuple(other.override_index, other.line, other.column);
  }
};

class Errors {
 public:
  Errors(std::string file, std::vector<std::string> overrides)
      : file_(std::move(file)), overrides_(std::move(overrides)) {}

  /// `text`: "group.name: problem; remedy".
  void add(const Location& location, std::string text) {
    Error& error = list_.emplace_back();
    error.location = location;
    error.text = std::move(text);
  }
  /// Throws one UserError with all mistakes, sorted by location, if any.
  void throw_if_any();

 private:
  struct Error {
    Location location;
    std::string text;
  };
  std::string where(const Location&) const;
  std::string file_;
  std::vector<std::string> overrides_;
  std::vector<Error> list_;
};

}  // namespace tern::namelist
