/// Text generation from prompts with an engine.
#pragma once
#include "generate/engine.hpp"

namespace tern::generate {

/// Options of an engine that writes `texts` at once during training: weights change between uses,
/// and passes have no more rows than one prompt's. max_tokens: per text, prompt included. steps:
/// per token, of a recursive model.
EngineOptions text_options(std::size_t texts, std::size_t max_tokens, std::size_t steps);

/// New tokens of each prompt, in the order of the prompts. Prompt i is request i and draws with
/// that number. A text ends after max_new tokens, before a stop token, or at max_model_len tokens
/// of the engine. Throws UserError, naming the prompt, if it is empty, has no room for a new token
/// or a token outside the vocabulary, or if logits are not finite. The engine has no other request
/// in work. `between`, if given, is called before each pass with the number of passes done.
template <class T>
std::vector<std::vector<std::int32_t>> write_texts(
    Engine<T>& engine, const ops::Context& context,
    const std::vector<std::vector<std::int32_t>>& prompts, std::size_t max_new,
    const std::function<void(std::size_t)>& between = {});

}  // namespace tern::generate
