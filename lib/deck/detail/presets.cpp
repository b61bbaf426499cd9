#include "deck/detail/presets.hpp"

#include <fmt/format.h>

namespace tern::deck::detail {
namespace {

struct Sets {
  const char *group, *preset;
  std::vector<const char*> fields;  // of the same group
};

const std::vector<Sets>& all_sets() {
  static const std::vector<Sets> all{
      {"objective", "preset", {"weight_base", "reward", "refinement_range", "norm_range"}},
      {"batch", "preset", {"per_rank", "global"}},
      {"optimizer", "lr_rule", {"lr"}}};
  return all;
}

bool overrides(const Field& field) { return field.given && field.location.override_index >= 0; }

}  // namespace

std::vector<Replaced> replace_by_presets(Table& table) {
  std::vector<Replaced> all;
  for (const auto& [group, preset, fields] : all_sets()) {
    const Field& named = table.at(group, preset);
    const std::string& value = *std::get<std::string*>(named.target);
    if (!overrides(named) || named.invalid || value == "none") continue;
    for (const char* name : fields) {
      Field& field = table.at(group, name);
      if (!field.given || field.invalid || overrides(field)) continue;
      field.given = false;
      all.push_back({fmt::format("{}.{}={}", group, preset, value), &field, text_of(field)});
    }
  }
  return all;
}

std::vector<std::string> notes_of(const std::vector<Replaced>& replaced) {
  std::vector<std::string> notes;
  std::string last;
  for (const auto& [preset, field, value] : replaced) {
    const std::string now = text_of(*field);
    if (now == value) continue;
    if (preset != last)
      notes.push_back(fmt::format("--set {} replaces the deck's ", last = preset));
    notes.back() += fmt::format("{}{} = {} with {}", notes.back().ends_with(' ') ? "" : "; ",
                                field->name, value, now);
  }
  return notes;
}

}  // namespace tern::deck::detail
