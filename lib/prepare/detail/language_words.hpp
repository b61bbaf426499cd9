/// Words of a dozen languages, enough for short sentences.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tern::prepare::detail {

struct Language {
  std::string_view name;   // in English
  std::string_view order;  // of a sentence: s, v, o, p for the lists below
  std::string_view subjects, verbs, objects, places;  // phrases with '|' between them
};

const std::vector<Language>& languages();

/// The phrases of a list.
std::vector<std::string_view> phrases(std::string_view list);

}  // namespace tern::prepare::detail
