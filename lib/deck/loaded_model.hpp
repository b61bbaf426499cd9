/// Decks whose &model load names a directory that describes its model itself.
#pragma once
#include <functional>
#include <optional>

#include "deck/deck.hpp"

namespace tern::deck {

struct LoadedModel {
  Model model;            // resolved
  std::string tokenizer;  // of &data, for this model; empty: not told
};

/// What is at a `load` path; nothing if the path does not tell (it is not there, or a checkpoint).
/// May throw UserError.
using ModelAt = std::function<std::optional<LoadedModel>(const std::string& load)>;

/// read() and parse() with such models: what &model does not give is taken from there (of kv_heads,
/// head_dim and ffn_hidden a 0 as well), and so is a tokenizer that &data does not name. A given
/// value that contradicts it is a mistake, but for what is a choice of training: context may be
/// smaller; dropout, attention, initial values and router_loss are free.
Deck read(const std::string& path, const std::vector<std::string>& overrides,
          const ModelAt& model_at);
Deck parse(const std::string& text, const std::string& name,
           const std::vector<std::string>& overrides, const ModelAt& model_at);

}  // namespace tern::deck
