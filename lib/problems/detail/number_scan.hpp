/// The numbers written in a text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "problems/exact_number.hpp"

namespace tern::problems::detail {

struct NumberInText {
  std::size_t begin, end;  // of its digits, commas and point
  Exact value;
  bool commas, leading_point;
  int decimals;
  bool percent;
  bool
      part;  // of a word, an ordinal, a date, a time, and in prose a fraction or a range: no quantity
};

/// Where a number stands: in sentences, or in calculations, with 12/5 and 12-5.
enum class NumbersIn { prose, calculation };

std::vector<NumberInText> scan_numbers(std::string_view text, NumbersIn where);

/// Quantities written as words: "three" and "half" are 3 and 1/2, "the third" also is one after 2.
std::vector<Exact> numbers_in_words(std::string_view text);

std::string small_letters(std::string_view text);

}  // namespace tern::problems::detail
