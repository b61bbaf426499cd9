/// The tokenizer that a deck names.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "deck/deck.hpp"
#include "text/tokenizer.hpp"

namespace tern::text {

/// Where &data tokenizer is looked for: beside the training data.
std::vector<std::filesystem::path> tokenizer_search(const deck::Deck& deck);

/// The tokenizer of &data tokenizer. Throws UserError if it does not fit &model vocabulary.
std::unique_ptr<Tokenizer> open_tokenizer(const deck::Deck& deck);

}  // namespace tern::text
