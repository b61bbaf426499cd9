#include "answer/prompt.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "weights/weights.hpp"

namespace tern::answer {

PromptRules prompt_rules(const deck::Deck& deck) {
  PromptRules rules{text::chat_rules(deck.data.chat_template, deck.data.thinking)};
  const bool marked = rules.chat.form != text::ChatTemplate::plain && !deck::trains(deck);
  rules.continues = !deck::kind_of(deck).answers && !marked;
  return rules;
}

std::vector<std::int32_t> prompt_tokens(std::string_view text, const PromptRules& rules,
                                        const text::Tokenizer& tokenizer) {
  if (!rules.continues) {
    const text::Message question{text::Role::user, std::string(text)};
    return text::tokens_of(text::generation_prompt({question}, rules.chat), tokenizer).tokens;
  }
  std::vector<std::int32_t> tokens = tokenizer.affixes().before;
  tokenizer.encode(text, tokens);
  if (!tokens.empty()) return tokens;
  if (tokenizer.end_of_text() < 0)
    user_error("the tokenizer has no end-of-text token to start from; set &generation prompt");
  return {tokenizer.end_of_text()};
}

std::vector<std::int32_t> end_tokens(const deck::Deck& deck, const PromptRules& rules,
                                     const text::Tokenizer& tokenizer) {
  std::vector<std::int32_t> ends;
  if (!rules.continues)
    ends = text::answer_ends(rules.chat, tokenizer);
  else if (tokenizer.end_of_text() >= 0)
    ends.push_back(tokenizer.end_of_text());
  for (const std::int64_t token : weights::end_tokens(deck)) {
    const bool written = token >= 0 && token < deck.model.vocabulary;
    const auto narrow = static_cast<std::int32_t>(written ? token : -1);
    if (written && std::find(ends.begin(), ends.end(), narrow) == ends.end())
      ends.push_back(narrow);
  }
  return ends;
}

}  // namespace tern::answer
