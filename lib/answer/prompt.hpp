/// What a model reads for a text, and the tokens that end what it writes: the same for --prompt, for
/// the samples of a training run and for a file of requests.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "deck/deck.hpp"
#include "text/chat.hpp"

namespace tern::answer {

struct PromptRules {
  text::ChatRules chat;
  /// The text is continued as it is, after the tokenizer's prefix; else it is a message of the user
  /// in the chat template.
  bool continues = false;
};

/// Texts are continued unless the model was trained on conversations (kind = 'supervised') or the
/// deck asks for a chat template with markers.
PromptRules prompt_rules(const deck::Deck& deck);

/// Tokens of the model's input. Empty texts are continued from the end of a document; throws
/// UserError if the tokenizer has no such token.
std::vector<std::int32_t> prompt_tokens(std::string_view text, const PromptRules& rules,
                                        const text::Tokenizer& tokenizer);

/// Tokens that end a text, the one trained with first: those of the chat template, the end of a
/// document, and what the model's directory names for Transformers (weights::end_tokens).
std::vector<std::int32_t> end_tokens(const deck::Deck& deck, const PromptRules& rules,
                                     const text::Tokenizer& tokenizer);

}  // namespace tern::answer
