#include "campaign/writer.hpp"

#include "answer/prompt.hpp"
#include "base/error.hpp"
#include "generate/texts.hpp"
#include "workload/serving.hpp"

namespace tern::campaign {

template <class T>
std::vector<Continuation> write_samples(workload::Workload<T>& w, const deck::Deck& deck,
                                        const text::Tokenizer& tokenizer, const std::string& prompt,
                                        const std::function<void(std::size_t)>& between) {
  TERN_REQUIRE(w.writer.has_value(), "samples = {}", deck.generation.samples);
  const answer::PromptRules rules = answer::prompt_rules(deck);
  const auto start = answer::prompt_tokens(prompt, rules, tokenizer);
  const auto& g = deck.generation;
  generate::SamplingOptions sampling_options;
  sampling_options.sampling = workload::sampling_of(deck);
  sampling_options.vocabulary = tokenizer.vocabulary();
  sampling_options.stop_tokens = answer::end_tokens(deck, rules, tokenizer);
  w.writer->set_sampling(sampling_options);
  const auto max_new = static_cast<std::size_t>(g.max_tokens);
  const std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(g.samples), start);
  const auto context = static_cast<std::size_t>(deck.model.context);
  const std::string separator = rules.continues ? "" : "\n";
  std::vector<Continuation> texts;
  for (const auto& written : generate::write_texts(*w.writer, w.context, prompts, max_new, between))
    texts.push_back({separator + tokenizer.decode(written),
                     start.size() + written.size() == context && written.size() < max_new});
  return texts;
}

std::string note(const Continuation& continuation, const deck::Deck& deck) {
  if (!continuation.fills_context) return "";
  return fmt::format("\n(ends here: &model context = {} is full)", deck.model.context);
}

template std::vector<Continuation> write_samples(workload::Workload<float>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&,
                                                 const std::function<void(std::size_t)>&);
template std::vector<Continuation> write_samples(workload::Workload<bf16>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&,
                                                 const std::function<void(std::size_t)>&);
template std::vector<Continuation> write_samples(workload::Workload<fp16>&, const deck::Deck&,
                                                 const text::Tokenizer&, const std::string&,
                                                 const std::function<void(std::size_t)>&);

}  // namespace tern::campaign
