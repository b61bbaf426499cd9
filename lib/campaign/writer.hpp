/// Text from a prompt: tokenizer and generator combined.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "text/deck_tokenizer.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// Text generated after a prompt.
struct Continuation {
  std::string text;
  bool fills_context = false;  // ended by the context, not by a stop token or max_tokens
};
/// Remark on a continuation that fills the context; else empty.
std::string note(const Continuation& continuation, const deck::Deck& deck);

/// &generation samples continuations of `prompt` (empty: start after end of text) with at most
/// max_tokens tokens each, prompt not included; for kind = 'supervised', answers to it. `between`,
/// if given, is called before each pass with the number of passes done, about a token of each.
template <class T>
std::vector<Continuation> write_samples(workload::Workload<T>& workload, const deck::Deck& deck,
                                        const text::Tokenizer& tokenizer, const std::string& prompt,
                                        const std::function<void(std::size_t)>& between = {});

}  // namespace tern::campaign
