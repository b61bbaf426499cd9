/// From a prompt to text: tokenizer and generator together.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "text/deck_tokenizer.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// What a model wrote behind a prompt.
struct Continuation {
  std::string text;
  bool fills_context = false;  // it ends there: not of itself, nor by max_tokens
};
/// What a reader of it must know; empty: nothing.
std::string note(const Continuation& continuation, const deck::Deck& deck);

/// &generation samples continuations of `prompt` (an empty one starts after end of text), of at
/// most max_tokens tokens each, prompt not included; of kind = 'supervised', answers to it.
template <class T>
std::vector<Continuation> write_samples(workload::Workload<T>& workload, const deck::Deck& deck,
                                        const text::Tokenizer& tokenizer,
                                        const std::string& prompt);

}  // namespace tern::campaign
