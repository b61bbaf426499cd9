#include "campaign/writer.hpp"

#include "base/error.hpp"
#include "deck/objective_kind.hpp"
#include "generate/texts.hpp"
#include "text/chat.hpp"
#include "workload/serving.hpp"

namespace tern::campaign {

namespace {

struct Prompt {
  std::vector<std::int32_t> tokens;
  std::int32_t stop;      // stop token
  std::string separator;  // between prompt and generated text
};

/// Prompt of a model that continues texts, or of one that answers.
Prompt prompt_of(const deck::Deck& deck, const text::Tokenizer& tokenizer,
                 const std::string& text) {
  if (deck::kind_of(deck).answers) {
    const auto rules = text::chat_rules(deck.data.chat_template, deck.data.thinking);
    const auto pieces = text::generation_prompt({{text::Role::user, text, {}}}, rules);
    return {text::tokens_of(pieces, tokenizer).tokens, text::answer_ends(rules, tokenizer).front(),
            "\n"};
  }
  Prompt prompt{tokenizer.affixes().before, tokenizer.end_of_text(), ""};
  tokenizer.encode(text, prompt.tokens);
  if (!prompt.tokens.empty()) return prompt;
  if (tokenizer.end_of_text() < 0)
    user_error("the tokenizer '{}' has no end-of-text token to start from: give &generation prompt",
               deck.data.tokenizer);
  prompt.tokens.push_back(tokenizer.end_of_text());
  return prompt;
}

}  // namespace

template <class T>
std::vector<Continuation> write_samples(workload::Workload<T>& w, const deck::Deck& deck,
                                        const text::Tokenizer& tokenizer,
                                        const std::string& prompt) {
  TERN_REQUIRE(w.writer.has_value(), "samples = {}", deck.generation.samples);
  const Prompt start = prompt_of(deck, tokenizer, prompt);
  const auto& g = deck.generation;
  generate::SamplingOptions sampling_options;
  sampling_options.sampling = workload::sampling_of(deck);
  sampling_options.vocabulary = tokenizer.vocabulary();
  if (start.stop >= 0) sampling_options.stop_tokens = {start.stop};
  w.writer->set_sampling(sampling_options);
  const auto max_new = static_cast<std::size_t>(g.max_tokens);
  const std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(g.samples),
                                                       start.tokens);
  const auto context = static_cast<std::size_t>(deck.model.context);
  std::vector<Continuation> texts;
  for (const auto& written : generate::write_texts(*w.writer, w.context, prompts, max_new))
    texts.push_back({start.separator + tokenizer.decode(written),
                     start.tokens.size() + written.size() == context && written.size() < max_new});
  return texts;
}

std::string note(const Continuation& continuation, const deck::Deck& deck) {
  if (!continuation.fills_context) return "";
  return fmt::format("\n(ends here: &model context = {} is full)", deck.model.context);
}

template std::vector<Continuation> write_samples(workload::Workload<float>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&);
template std::vector<Continuation> write_samples(workload::Workload<bf16>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&);
template std::vector<Continuation> write_samples(workload::Workload<fp16>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&);

}  // namespace tern::campaign
