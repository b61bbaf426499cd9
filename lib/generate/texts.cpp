#include "generate/texts.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "generate/detail/check_tokens.hpp"

namespace tern::generate {
namespace {

void check(const std::vector<std::int32_t>& prompt, std::size_t number, std::size_t max_tokens,
           std::size_t vocabulary) {
  if (prompt.empty())
    user_error("prompt {} is empty; give at least one token (end of text begins a document)",
               number);
  if (prompt.size() >= max_tokens)
    user_error("prompt {} has {} tokens, and a sequence holds {} with the new ones; shorten it",
               number, prompt.size(), max_tokens);
  detail::check_tokens(prompt, number, vocabulary);
}

}  // namespace

EngineOptions text_options(std::size_t texts, std::size_t max_tokens, std::size_t steps) {
  constexpr std::size_t prompt_rows = 256;
  const std::size_t rows = std::min(max_tokens, prompt_rows);
  EngineOptions options;
  options.batch = texts;
  options.max_model_len = max_tokens;
  options.prefill_tokens = rows > texts ? rows - texts : 1;
  options.prefix_cache = options.constant_weights = false;
  options.steps = steps;
  return options;
}

template <class T>
std::vector<std::vector<std::int32_t>> write_texts(
    Engine<T>& engine, const ops::Context& context,
    const std::vector<std::vector<std::int32_t>>& prompts, std::size_t max_new,
    const std::function<void(std::size_t)>& between) {
  const std::size_t max_tokens = engine.max_model_len();
  for (std::size_t i = 0; i < prompts.size(); ++i)
    check(prompts[i], i, max_tokens, engine.vocabulary());
  for (std::size_t i = 0; i < prompts.size(); ++i)
    engine.submit({i, prompts[i], std::min(max_new, max_tokens - prompts[i].size())});
  std::vector<std::vector<std::int32_t>> texts(prompts.size());
  for (std::size_t pass = 0; engine.busy(); ++pass) {
    if (between) between(pass);
    for (Answer& answer : engine.step(context)) {
      if (answer.finish_reason == FinishReason::refused ||
          answer.finish_reason == FinishReason::not_finite)
        user_error("prompt {}: {}", answer.id, answer.reason);
      texts[answer.id] = std::move(answer.tokens);
    }
  }
  return texts;
}

#define INSTANTIATE(T)                                                                             \
  template std::vector<std::vector<std::int32_t>> write_texts(                                     \
      Engine<T>&, const ops::Context&, const std::vector<std::vector<std::int32_t>>&, std::size_t, \
      const std::function<void(std::size_t)>&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::generate
