#include "text/deck_tokenizer.hpp"

#include "base/error.hpp"
#include "deck/objective_kind.hpp"

namespace tern::text {

std::vector<std::filesystem::path> tokenizer_search(const deck::Deck& deck) {
  std::vector<std::filesystem::path> search;
  for (const auto* files : {&deck.data.train, &deck.data.valid})
    for (const std::string& pattern : *files) {
      const std::filesystem::path folder = std::filesystem::path(pattern).parent_path();
      search.push_back(folder);
      search.push_back(folder.parent_path());
    }
  search.emplace_back("data");
  return search;
}

std::unique_ptr<Tokenizer> open_tokenizer(const deck::Deck& deck) {
  auto tokenizer = open_tokenizer(deck.data.tokenizer, tokenizer_search(deck));
  if (tokenizer->vocabulary() > static_cast<std::size_t>(deck.model.vocabulary))
    user_error(
        "the tokenizer '{}' has {} tokens, more than &model vocabulary = {}; raise the vocabulary, "
        "or set another &data tokenizer",
        deck.data.tokenizer, tokenizer->vocabulary(), deck.model.vocabulary);
  if (deck::kind_of(deck).diffuses &&
      tokenizer->vocabulary() == static_cast<std::size_t>(deck.model.vocabulary))
    user_error(
        "the tokenizer '{}' has {} tokens, as many as &model vocabulary, and block diffusion uses "
        "the last one as its mask; set vocabulary = {} or more",
        deck.data.tokenizer, tokenizer->vocabulary(), deck.model.vocabulary + 1);
  return tokenizer;
}

}  // namespace tern::text
