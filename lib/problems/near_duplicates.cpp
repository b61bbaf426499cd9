#include "problems/near_duplicates.hpp"

#include <algorithm>

#include "base/hashes.hpp"

namespace tern::problems {
namespace {

constexpr std::size_t phrase_words = 4;

/// Words in small letters; a number is one word, whatever its value.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    std::string& word = words.back();
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
    const bool digit = c >= '0' && c <= '9';
    if (digit && word.empty())
      word.push_back('#');
    else if (letter)
      word.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
    else if (!digit && !word.empty() && c != '\'' && c != ',' && c != '.')
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Hashes of the different phrases; of a text shorter than one, of all its words.
std::vector<std::uint64_t> phrases_of(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  std::vector<std::uint64_t> phrases;
  for (std::size_t i = 0; i == 0 || i + phrase_words <= words.size(); ++i) {
    Fnv hash;
    for (std::size_t j = i; j < std::min(i + phrase_words, words.size()); ++j)
      hash.add(words[j]).add(" ");
    phrases.push_back(hash.value());
  }
  std::sort(phrases.begin(), phrases.end());
  phrases.erase(std::unique(phrases.begin(), phrases.end()), phrases.end());
  return phrases;
}

}  // namespace

NearDuplicates::NearDuplicates(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const auto phrases = phrases_of(text);
    for (const std::uint64_t phrase : phrases) in_[phrase].push_back(sizes_.size());
    sizes_.push_back(phrases.size());
  }
}

bool NearDuplicates::contains(std::string_view text) const {
  const auto phrases = phrases_of(text);
  std::unordered_map<std::size_t, std::size_t> common;
  for (const std::uint64_t phrase : phrases)
    if (const auto found = in_.find(phrase); found != in_.end())
      for (const std::size_t other : found->second) ++common[other];
  return std::any_of(common.begin(), common.end(), [&](const auto& pair) {
    const auto& [other, both] = pair;
    return 2 * both > phrases.size() + sizes_[other] - both;
  });
}

}  // namespace tern::problems
