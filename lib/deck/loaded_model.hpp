/// Decks whose &model load names a directory that describes its model (config.json).
#pragma once
#include <functional>
#include <optional>

#include "deck/deck.hpp"

namespace tern::deck {

struct LoadedModel {
  Model model;            // resolved
  std::string tokenizer;  // value for &data tokenizer; empty: unknown
};

/// Reads the model at a `load` path; nullopt if the path does not describe one (missing, or a
/// checkpoint). May throw UserError.
using ModelAt = std::function<std::optional<LoadedModel>(const std::string& load)>;

/// read() and parse() with such models. Values absent from &model come from the loaded model (also
/// kv_heads, head_dim and ffn_hidden = 0), as does a tokenizer that &data does not name. A given
/// value that contradicts it is a mistake, except for choices of training: context may be smaller
/// (unless positions are learned); dropout, attention, initial values and router_loss are free. With
/// load_rule = 'matching' all are. `notes`: lines on values of the deck that a preset of the
/// overrides replaces.
Deck read(const std::string& path, const std::vector<std::string>& overrides,
          const ModelAt& model_at, std::vector<std::string>* notes = nullptr);
Deck parse(const std::string& text, const std::string& name,
           const std::vector<std::string>& overrides, const ModelAt& model_at,
           std::vector<std::string>* notes = nullptr);

}  // namespace tern::deck
