/// The deck's tokenizer.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "deck/deck.hpp"
#include "text/tokenizer.hpp"

namespace tern::text {

/// Search path for &data tokenizer: next to the training and validation data, then data/.
std::vector<std::filesystem::path> tokenizer_search(const deck::Deck& deck);

/// Opens &data tokenizer. Throws UserError if it does not fit &model vocabulary.
std::unique_ptr<Tokenizer> open_tokenizer(const deck::Deck& deck);

}  // namespace tern::text
