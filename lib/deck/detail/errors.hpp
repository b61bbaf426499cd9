/// Places in a deck and the list of mistakes found in it.
#pragma once
#include <string>
#include <tuple>
#include <vector>

namespace tern::deck::detail {

/// A position in the deck's text, or an override. Lines and columns (in characters) count from 1;
/// line 0 stands for the deck as a whole.
struct Place {
  int line = 0, column = 0;
  int override_index = -1;  // the number of the override the value came from; -1: the deck's text

  bool operator<(const Place& other) const {
    return std::tuple(override_index, line, column) <
           std::tuple(other.override_index, other.line, other.column);
  }
};

class Errors {
 public:
  Errors(std::string file, std::vector<std::string> overrides)
      : file_(std::move(file)), overrides_(std::move(overrides)) {}

  /// `text` reads "group.name: what is wrong; remedy".
  void add(const Place& place, std::string text) {
    Error& error = list_.emplace_back();
    error.place = place;
    error.text = std::move(text);
  }
  /// Throws one UserError with all mistakes in the order of their places, if there are any.
  void throw_if_any();

 private:
  struct Error {
    Place place;
    std::string text;
  };
  std::string where(const Place&) const;
  std::string file_;
  std::vector<std::string> overrides_;
  std::vector<Error> list_;
};

}  // namespace tern::deck::detail
