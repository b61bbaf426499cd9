#include "campaign/writer.hpp"

#include <filesystem>

#include "base/error.hpp"

namespace tern::campaign {

std::unique_ptr<data::Tokenizer> open_tokenizer(const deck::Deck& deck) {
  std::vector<std::filesystem::path> search;
  for (const auto* files : {&deck.data.train, &deck.data.valid})
    for (const std::string& pattern : *files) {
      const std::filesystem::path folder = std::filesystem::path(pattern).parent_path();
      search.push_back(folder);
      search.push_back(folder.parent_path());
    }
  search.emplace_back("data");
  auto tokenizer = data::open_tokenizer(deck.data.tokenizer, search);
  if (tokenizer->vocabulary() > static_cast<std::size_t>(deck.model.vocabulary))
    user_error(
        "the tokenizer '{}' has {} tokens, more than &model vocabulary = {}: they do not belong "
        "together",
        deck.data.tokenizer, tokenizer->vocabulary(), deck.model.vocabulary);
  return tokenizer;
}

template <class T>
std::vector<std::string> write_samples(plan::Workload<T>& w, const deck::Deck& deck,
                                       const data::Tokenizer& tokenizer,
                                       const std::string& prompt) {
  TERN_REQUIRE(w.generator.has_value(), "samples = {}", deck.generation.samples);
  std::vector<std::int32_t> tokens;
  tokenizer.encode(prompt, tokens);
  if (tokens.empty()) {
    if (tokenizer.end_of_text() < 0)
      user_error(
          "the tokenizer '{}' has no end-of-text token to start from: give &generation prompt",
          deck.data.tokenizer);
    tokens.push_back(tokenizer.end_of_text());
  }
  const auto& g = deck.generation;
  generate::GenerationOptions options;
  options.sampling = {g.temperature, g.top_p, static_cast<int>(g.top_k),
                      static_cast<std::uint64_t>(deck.campaign.seed)};
  options.max_new = static_cast<std::size_t>(g.max_tokens);
  options.stop = tokenizer.end_of_text();
  options.vocabulary = tokenizer.vocabulary();
  const std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(g.samples), tokens);
  std::vector<std::string> texts;
  for (const auto& written : w.generator->generate(w.context, prompts, options))
    texts.push_back(tokenizer.decode(written));
  return texts;
}

template std::vector<std::string> write_samples(plan::Workload<float>&, const deck::Deck&,
                                                const data::Tokenizer&, const std::string&);
template std::vector<std::string> write_samples(plan::Workload<bf16>&, const deck::Deck&,
                                                const data::Tokenizer&, const std::string&);

}  // namespace tern::campaign
