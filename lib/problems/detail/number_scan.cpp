#include "problems/detail/number_scan.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace tern::problems::detail {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A text that reads as if blanks surrounded it.
struct Reader {
  std::string_view text;
  char operator[](std::size_t at) const { return at < text.size() ? text[at] : ' '; }
  std::size_t digits(std::size_t at) const {
    std::size_t n = 0;
    while (is_digit((*this)[at + n])) ++n;
    return n;
  }
  std::string_view letters(std::size_t at) const {
    std::size_t n = 0;
    while (is_letter((*this)[at + n])) ++n;
    return at < text.size() ? text.substr(at, n) : std::string_view();
  }
};

/// Whether the number from `begin` to `end` is no quantity.
bool is_part(const Reader& text, std::size_t begin, std::size_t end, NumbersIn where) {
  const char before = begin > 0 ? text[begin - 1] : ' ',
             earlier = begin > 1 ? text[begin - 2] : ' ';
  const bool digit_follows = is_digit(text[end + 1]), digit_precedes = is_digit(earlier);
  if (before == '_' || before == '#') return true;
  if (is_letter(before) && !(where == NumbersIn::calculation && (before == 'x' || before == 'X')))
    return true;
  if ((before == ':' && digit_precedes) || (text[end] == ':' && digit_follows)) return true;
  for (const char* suffix : {"st", "nd", "rd", "th", "am", "pm", "AM", "PM", "s"})
    if (text.letters(end) == suffix) return true;
  if (where == NumbersIn::calculation) return false;
  const auto joins = [](char c) { return c == '/' || c == '-'; };
  return (joins(before) && digit_precedes) || (joins(text[end]) && digit_follows);
}

NumberInText number_at(const Reader& text, std::size_t begin, NumbersIn where) {
  NumberInText found{};
  found.begin = begin;
  std::size_t end = begin + text.digits(begin);
  found.leading_point = end == begin;
  while (end - begin >= 1 && text[end] == ',' && text.digits(end + 1) == 3) {
    end += 4;
    found.commas = true;
  }
  if (text[end] == '.' && is_digit(text[end + 1])) {
    found.decimals = static_cast<int>(text.digits(end + 1));
    end += 1 + text.digits(end + 1);
  }
  found.end = end;
  found.value = Exact::parse(text.text.substr(begin, end - begin));
  found.percent = text[end] == '%' || (text[end] == ' ' && text.letters(end + 1) == "percent");
  found.part = is_part(text, begin, end, where);
  return found;
}

const std::map<std::string, std::vector<Exact>, std::less<>>& words() {
  static const std::map<std::string, std::vector<Exact>, std::less<>> all{
      {"zero", {0}},
      {"one", {1}},
      {"once", {1}},
      {"two", {2}},
      {"twice", {2}},
      {"double", {2}},
      {"doubled", {2}},
      {"pair", {2}},
      {"three", {3}},
      {"thrice", {3}},
      {"triple", {3}},
      {"tripled", {3}},
      {"third", {3, Exact(1, 3)}},
      {"thirds", {3, Exact(1, 3)}},
      {"four", {4}},
      {"quadruple", {4}},
      {"quarter", {4, Exact(1, 4), 25}},
      {"quarters", {4, Exact(1, 4), 25}},
      {"fourth", {4, Exact(1, 4)}},
      {"five", {5}},
      {"fifth", {5, Exact(1, 5)}},
      {"six", {6}},
      {"sixth", {6, Exact(1, 6)}},
      {"seven", {7}},
      {"seventh", {7, Exact(1, 7)}},
      {"eight", {8}},
      {"eighth", {8, Exact(1, 8)}},
      {"nine", {9}},
      {"ninth", {9, Exact(1, 9)}},
      {"ten", {10}},
      {"tenth", {10, Exact(1, 10)}},
      {"eleven", {11}},
      {"twelve", {12}},
      {"dozen", {12}},
      {"dozens", {12}},
      {"thirteen", {13}},
      {"fourteen", {14}},
      {"fifteen", {15}},
      {"sixteen", {16}},
      {"seventeen", {17}},
      {"eighteen", {18}},
      {"nineteen", {19}},
      {"twenty", {20}},
      {"thirty", {30}},
      {"forty", {40}},
      {"fifty", {50}},
      {"sixty", {60}},
      {"seventy", {70}},
      {"eighty", {80}},
      {"ninety", {90}},
      {"hundred", {100}},
      {"thousand", {1000}},
      {"half", {2, Exact(1, 2)}},
      {"halves", {2, Exact(1, 2)}}};
  return all;
}

}  // namespace

std::vector<NumberInText> scan_numbers(std::string_view text, NumbersIn where) {
  const Reader reader{text};
  std::vector<NumberInText> found;
  for (std::size_t at = 0; at < text.size();) {
    const bool point = reader[at] == '.' && is_digit(reader[at + 1]);
    if (!is_digit(reader[at]) && !point) {
      ++at;
      continue;
    }
    found.push_back(number_at(reader, at, where));
    at = found.back().end;
  }
  return found;
}

std::vector<Exact> numbers_in_words(std::string_view text) {
  const Reader reader{text};
  std::vector<Exact> found;
  std::string before;
  const std::vector<Exact>* tens = nullptr;  // of "twenty-" in "twenty-five"
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view letters = reader.letters(at);
    if (letters.empty()) continue;
    const std::string word = small_letters(letters);
    at += letters.size();
    const auto known = words().find(word);
    const std::vector<Exact>* numbers = known == words().end() ? nullptr : &known->second;
    if (numbers) {
      found.insert(found.end(), numbers->begin(), numbers->end());
      if (tens && numbers->front() < 10) found.push_back(tens->front() + numbers->front());
      // "The seventh day" may come after six.
      if (before == "the" && numbers->size() > 1) found.push_back(numbers->front() - Exact(1));
    }
    tens = numbers && word.ends_with("ty") && reader[at] == '-' ? numbers : nullptr;
    before = word;
  }
  return found;
}

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return small;
}

}  // namespace tern::problems::detail
