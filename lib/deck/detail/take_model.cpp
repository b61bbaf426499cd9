#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "deck/detail/assign.hpp"

namespace tern::deck::detail {
namespace {

constexpr std::array zero_follows{"heads", "kv_heads", "head_dim", "ffn_hidden"};

template <class Names>
bool among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the deck sets the field.
bool speaks(const Field& field) {
  if (!field.given || !among(zero_follows, field.name)) return field.given;
  return *std::get<std::int64_t*>(field.target) != 0;
}

/// Whether the field is a context that may be shorter: not with learned positions.
bool shortens(const Field& given, const Model& model) {
  return given.name == "context" && model.position != "learned";
}

bool agrees(const Field& given, const Field& loaded, const Model& model) {
  if (given.of_training || given.name == "window") return true;
  if (shortens(given, model))
    return *std::get<std::int64_t*>(given.target) <= *std::get<std::int64_t*>(loaded.target);
  return text_of(given) == text_of(loaded);
}

void copy(const Field& from, const Field& to) {
  std::visit(
      [&](auto* target) { *target = *std::get<std::decay_t<decltype(target)>>(from.target); },
      to.target);
}

}  // namespace

void take_model(Deck& deck, Table& table, const ModelAt& model_at, Errors& errors) {
  const std::string path = deck.model.load;
  if (!model_at || path.empty() || table.at("model", "load").invalid) return;
  const std::optional<LoadedModel> there = model_at(path);
  if (!there) return;
  const Model& model = there->model;
  const bool partly = deck.model.load_rule == "matching";
  Deck other;
  other.model = model;
  other.data.tokenizer = there->tokenizer;
  Table loaded = describe(other);
  const Field& tokenizer = table.at("data", "tokenizer");
  if (!tokenizer.given && !tokenizer.invalid && !there->tokenizer.empty())
    copy(loaded.at("data", "tokenizer"), tokenizer);
  for (Field& field : table.find("model")->fields) {
    if (field.name == "load" || field.invalid) continue;
    const Field& theirs = loaded.at("model", field.name);
    if (!speaks(field)) {
      copy(theirs, field);
    } else if (!partly && !agrees(field, theirs, model)) {
      field.invalid = true;
      errors.add(
          field.location,
          fmt::format("model.{}: {}, but {} has {}{}; set that, or remove the line", field.name,
                      text_of(field), (std::filesystem::path(path) / "config.json").string(),
                      shortens(field, model) ? "at most " : "", text_of(theirs)));
    }
  }
}

}  // namespace tern::deck::detail
