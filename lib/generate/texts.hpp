/// Texts that go on from prompts, by an engine.
#pragma once
#include "generate/engine.hpp"

namespace tern::generate {

/// What an engine needs to write `texts` at once beside training: weights change between its uses,
/// and its passes have no more rows than one of a prompt. max_tokens: of one text, prompt included.
/// steps: of a recursive model for each token.
EngineOptions text_options(std::size_t texts, std::size_t max_tokens, std::size_t steps);

/// The new tokens of each prompt, in the order of the prompts. Prompt i is request i, and draws
/// with that number. A text ends after max_new tokens, before a stop token, or when it has
/// max_tokens (of the engine's options: max_model_len). Throws UserError for an empty prompt, one
/// without room for a new token, a token outside the vocabulary, or logits that are not finite,
/// naming the prompt. The engine has no other request in work.
template <class T>
std::vector<std::vector<std::int32_t>> write_texts(
    Engine<T>& engine, const ops::Context& context,
    const std::vector<std::vector<std::int32_t>>& prompts, std::size_t max_new);

}  // namespace tern::generate
