/// Phrases of two dozen languages for short sentences.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tern::prepare::detail {

struct Language {
  std::string_view name;                              // in English
  std::string_view order;                             // of a sentence: s, v, o, p, the lists below
  std::string_view subjects, verbs, objects, places;  // phrases separated by '|'
};

const std::vector<Language>& languages();

/// Splits a list into phrases.
std::vector<std::string_view> phrases(std::string_view list);

}  // namespace tern::prepare::detail
