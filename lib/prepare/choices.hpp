/// Enumerators from command-line words.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "prepare/documents.hpp"
#include "text/bpe_training.hpp"

namespace tern::prepare {

/// Value of `word`; otherwise throws UserError that names `option` and the known words.
template <class Value>
Value enumerator(const std::string& option, const std::string& word,
                 const std::vector<std::pair<std::string, Value>>& values) {
  std::string known;
  for (const auto& [name, value] : values) {
    if (name == word) return value;
    known += (known.empty() ? "" : ", ") + name;
  }
  user_error("{} '{}' is none of {}; see ./prepare --help", option, word, known);
}

inline InputFormat input_format(const std::string& option, const std::string& word) {
  return enumerator<InputFormat>(option, word,
                                 {{"auto", InputFormat::automatic},
                                  {"text", InputFormat::text},
                                  {"lines", InputFormat::lines},
                                  {"jsonl", InputFormat::jsonl}});
}

inline text::PiecePattern piece_pattern(const std::string& option, const std::string& word) {
  return enumerator<text::PiecePattern>(
      option, word, {{"gpt2", text::PiecePattern::gpt2}, {"gpt4", text::PiecePattern::gpt4}});
}

}  // namespace tern::prepare
