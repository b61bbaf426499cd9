#include "deck/differences.hpp"

#include <fmt/format.h>

#include "deck/choices.hpp"
#include "deck/detail/table.hpp"

namespace tern::deck {
namespace {

/// The model with defaults for fields that have no effect.
Model effective(Model m) {
  const Model plain;
  if (position_of(m) != Position::rope) m.rope_base = plain.rope_base;
  if (m.window >= m.context) m.window = 0;
  if (m.experts == 0) {
    m.experts_per_token = m.expert_hidden = 0;
    m.renormalize_experts = plain.renormalize_experts;
  }
  if (m.inner_steps == 0) m.recursion = plain.recursion, m.initial_states = plain.initial_states;
  return m;
}

}  // namespace

std::vector<Difference> differences(const Deck& first, const Deck& second) {
  Deck a = first, b = second;
  const detail::Table ours = detail::describe(a), others = detail::describe(b);
  std::vector<Difference> result;
  for (std::size_t g = 0; g < ours.groups.size(); ++g)
    for (std::size_t f = 0; f < ours.groups[g].fields.size(); ++f) {
      const detail::Field& field = ours.groups[g].fields[f];
      const std::string one = detail::text_of(field);
      const std::string other = detail::text_of(others.groups[g].fields[f]);
      if (one != other) result.push_back({ours.groups[g].name, field.name, one, other});
    }
  return result;
}

std::vector<Difference> model_differences(const Model& first, const Model& second) {
  Deck a, b;
  a.model = effective(first), b.model = effective(second);
  detail::Table table = detail::describe(a);
  std::vector<Difference> result = differences(a, b);
  std::erase_if(result, [&](const Difference& difference) {
    return table.at(difference.group, difference.name).of_training;
  });
  return result;
}

std::vector<std::string> settings(const Deck& deck) {
  Deck copy = deck;
  const detail::Table table = detail::describe(copy);
  std::vector<std::string> result;
  for (const detail::Group& group : table.groups)
    for (const detail::Field& field : group.fields)
      result.push_back(fmt::format("{}.{} = {}", group.name, field.name, detail::text_of(field)));
  return result;
}

std::string text_of(const std::vector<Difference>& differences) {
  std::string text;
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  for (const Difference& d : differences)
    text += fmt::format("{}{}.{} = {}, not {}", text.empty() ? "" : "\n", d.group, d.name,
                        shown(d.first), shown(d.second));
  return text;
}

}  // namespace tern::deck
