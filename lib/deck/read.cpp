#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/detail/assign.hpp"
#include "deck/detail/presets.hpp"
#include "deck/loaded_model.hpp"
#include "deck/objective_kind.hpp"
#include "deck/renamed.hpp"
#include "deck/rules.hpp"

namespace tern::deck {
namespace {

using namespace detail;

constexpr std::size_t largest_deck = 1 << 20;  // bytes; a larger file is not a deck

std::vector<std::string> names_of(const Group& group) {
  std::vector<std::string> names;
  for (const Field& field : group.fields) names.push_back(field.name);
  return names;
}

std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const Group& group : table.groups) names.push_back(group.name);
  return names;
}

void unknown_name(Table& table, const Group& group, const Assignment& assignment, Errors& errors) {
  std::string remedy = successor(group.name, assignment.name);
  for (const Group& other : table.groups)
    if (remedy.empty() && table.find(other.name, assignment.name)) {
      remedy = fmt::format("; it belongs to &{}", other.name);
      break;
    }
  if (remedy.empty()) remedy = suggestion(assignment.name, names_of(group));
  errors.add(assignment.location, fmt::format("{}.{}: no such name in &{}{}", group.name,
                                              assignment.name, group.name, remedy));
}

/// Groups must be known and occur once; fields of unknown groups are not checked.
void check_groups(const namelist::ParsedDeck& parsed, Table& table, Errors& errors) {
  std::map<std::string, Location> seen;
  for (const namelist::GroupUse& use : parsed.groups) {
    if (!table.find(use.name))
      errors.add(use.location, fmt::format("{}: no such group{}", use.name,
                                           suggestion(use.name, names_of(table))));
    else if (const auto [first, fresh] = seen.emplace(use.name, use.location); !fresh)
      errors.add(use.location,
                 fmt::format("{}: the group was already given on line {}; merge the two", use.name,
                             first->second.line));
  }
}

/// A name may be assigned once as a whole and then once per element.
void check_repetition(const Assignment& assignment,
                      std::map<std::string, std::map<int, Location>>& seen, Errors& errors) {
  const std::string full = assignment.group + "." + assignment.name;
  auto& locations = seen[full];
  auto earlier = locations.find(assignment.index);
  if (earlier == locations.end() && assignment.index == 0) earlier = locations.begin();
  if (earlier != locations.end())
    errors.add(assignment.location,
               fmt::format("{}: already given on line {}; remove one of the two", full,
                           earlier->second.line));
  locations.emplace(assignment.index, assignment.location);
}

void apply(const Assignment& assignment, Table& table, Errors& errors) {
  Group* group = table.find(assignment.group);
  if (!group) return;
  Field* field = group->find(assignment.name);
  if (!field) return unknown_name(table, *group, assignment, errors);
  assign(assignment.group + "." + assignment.name, *field, assignment, errors);
}

void apply_overrides(const std::vector<std::string>& overrides, Table& table, Errors& errors) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const Location location{0, 0, static_cast<int>(i)};
    Errors unclean(overrides[i], {});
    Assignment assignment;
    if (clean(overrides[i], unclean) != overrides[i]) {
      errors.add(location, "contains control characters or bytes that are not UTF-8; remove them");
    } else if (parse_override(overrides[i], location.override_index, table, assignment, errors)) {
      if (!table.find(assignment.group))
        errors.add(location, fmt::format("{}: no such group{}", assignment.group,
                                         suggestion(assignment.group, names_of(table))));
      apply(assignment, table, errors);
    } else if (Field* field = table.find(assignment.group, assignment.name)) {
      field->invalid = true;
    }
  }
}

std::int64_t default_ffn_hidden(const Model& m) {
  if (!gated(activation_of(m))) return 4 * m.hidden;
  return (8 * m.hidden / 3 + 63) / 64 * 64;
}

void resolve(Deck& deck) {
  Model& m = deck.model;
  if (m.heads == 0) m.heads = m.hidden / head_size_of(m);
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.head_dim == 0) m.head_dim = m.hidden / m.heads;
  if (m.ffn_hidden == 0) m.ffn_hidden = default_ffn_hidden(m);
  if (deck.objective.hierarchy == "hdp" && kind_of(deck).diffuses) m.levels = 3;
  deck.optimizer.lr = lr_of(deck);
  Batch& batch = deck.batch;
  batch.per_rank = per_rank_of(batch);
  batch.global = global_of(batch);
  if (const RefinementPreset* preset = preset_of(deck.objective)) {
    deck.objective.weight_base = preset->weight_base;
    deck.objective.reward = preset->reward;
    deck.objective.refinement_range = preset->refinement_range;
    deck.objective.norm_range = preset->norm_range;
  }
  if (batch.global == 0)
    batch.global =
        batch.per_rank * deck.parallel.data * std::max<std::int64_t>(1, batch.accumulation);
  Generation& g = deck.generation;
  if (g.checkpoint.empty()) g.checkpoint = "best";
  if (deck.campaign.task == "generate" && !g.prompt.empty())
    g.samples = std::max<std::int64_t>(1, g.samples);
  if (deck.output.directory.empty()) deck.output.directory = "runs/" + deck.campaign.name;
}

using Check = void (*)(const Deck&, Table&, Errors&);

Deck parse_and_check(const std::string& text, const std::string& name,
                     const std::vector<std::string>& overrides, const ModelAt& model_at,
                     std::initializer_list<Check> checks, std::vector<std::string>* notes) {
  if (text.size() > largest_deck)
    user_error(
        "{}: more than {} bytes, which is too long for a deck; check that this is the right file",
        name, largest_deck);
  Deck deck;
  Table table = describe(deck);
  Errors errors(name, overrides);
  const namelist::MayHoldLines may_hold_lines = [&](const std::string& group,
                                                    const std::string& field) {
    const Field* found = table.find(group, field);
    return found && found->lines;
  };

  const namelist::ParsedDeck parsed =
      namelist::parse_deck(clean(text, errors), may_hold_lines, errors);
  check_groups(parsed, table, errors);
  std::map<std::string, std::map<int, Location>> seen;
  for (const Assignment& assignment : parsed.assignments) {
    check_repetition(assignment, seen, errors);
    apply(assignment, table, errors);
  }
  for (const Assignment& failed : parsed.failed)
    if (Field* field = table.find(failed.group, failed.name)) field->invalid = true;
  apply_overrides(overrides, table, errors);
  const std::vector<Replaced> replaced = replace_by_presets(table);
  take_model(deck, table, model_at, errors);
  check_ranges(table, errors);
  for (const Check check : checks) check(deck, table, errors);
  errors.throw_if_any();
  resolve(deck);
  if (notes) *notes = notes_of(replaced);
  return deck;
}

}  // namespace

void check(Deck deck, const std::string& name) {
  Table table = describe(deck);
  Errors errors(name, {});
  check_ranges(table, errors);
  check_contradictions(deck, table, errors);
  errors.throw_if_any();
}

Deck parse(const std::string& text, const std::string& name,
           const std::vector<std::string>& overrides) {
  return parse(text, name, overrides, {});
}

Deck parse(const std::string& text, const std::string& name,
           const std::vector<std::string>& overrides, const ModelAt& model_at,
           std::vector<std::string>* notes) {
  return parse_and_check(text, name, overrides, model_at, {check_contradictions}, notes);
}

Deck read(const std::string& path, const std::vector<std::string>& overrides) {
  return read(path, overrides, {});
}

Deck read(const std::string& path, const std::vector<std::string>& overrides,
          const ModelAt& model_at, std::vector<std::string>* notes) {
  std::ifstream file(path, std::ios::binary);
  std::string text(largest_deck + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    user_error("{}: cannot read the deck; check that the file exists and is readable", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  // The resolved deck in a run directory may be of an earlier version.
  if (std::filesystem::path(path).filename() == "deck.in") text = in_current_names(std::move(text));
  return parse_and_check(text, path, overrides, model_at, {check_contradictions, check_files},
                         notes);
}

}  // namespace tern::deck
