#include "deck/detail/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"
#include "words/suggestion.hpp"

namespace tern::deck::detail {
namespace {

template <class Struct>
void add_group(Table& table, const char* name, const char* help, Struct& values) {
  Group group;
  group.name = name;
  group.help = help;
  describe(group, values);
  table.groups.push_back(std::move(group));
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

template <class List, class Text>
std::string join(const List& list, const char* between, Text text) {
  std::string result;
  for (const auto& item : list) {
    if (!result.empty()) result += between;
    result += text(item);
  }
  return result;
}

std::string bound(double value) {
  return value == static_cast<double>(static_cast<std::int64_t>(value))
             ? std::to_string(static_cast<std::int64_t>(value))
             : text_of(value);
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Table describe(Deck& deck) {
  Table table;
  add_group(table, "campaign", "Task, length and seed of the run.", deck.campaign);
  add_group(table, "model", "Architecture and initialization of the model.", deck.model);
  add_group(table, "objective", "Training objective.", deck.objective);
  add_group(table, "data", "Training and validation data, and the tokenizer.", deck.data);
  add_group(table, "batch", "Batch size; gradient accumulation follows from it.", deck.batch);
  add_group(table, "optimizer", "Optimizer and learning-rate schedule.", deck.optimizer);
  add_group(table, "precision", "Number formats and activation recomputation.", deck.precision);
  add_group(table, "parallel", "Mesh of ranks: data x tensor x pipeline.", deck.parallel);
  add_group(table, "checkpoint", "Checkpoints: how often, and how many are kept.", deck.checkpoint);
  add_group(table, "evaluation", "Evaluation on the validation data, and when it ends the run.",
            deck.evaluation);
  add_group(table, "generation", "Text generation, from a prompt or a file of requests.",
            deck.generation);
  add_group(table, "output", "Output directory, log interval and profiling.", deck.output);
  add_group(table, "cost", "Price and peak rate of a device.", deck.cost);
  return table;
}

Field* Group::find(std::string_view field) {
  for (Field& candidate : fields)
    if (candidate.name == field) return &candidate;
  return nullptr;
}

Group* Table::find(std::string_view group) {
  for (Group& candidate : groups)
    if (candidate.name == group) return &candidate;
  return nullptr;
}

Field* Table::find(std::string_view group, std::string_view field) {
  Group* found = find(group);
  return found ? found->find(field) : nullptr;
}

Field& Table::at(std::string_view group, std::string_view field) {
  Field* found = find(group, field);
  TERN_REQUIRE(found, "{}.{}", group, field);
  return *found;
}

std::string type_of(const Field& field) {
  static constexpr std::array names = {"integer", "real", "logical", "string", "strings", "reals"};
  return names[field.target.index()];
}

std::string range_of(const Field& field) {
  if (!field.choices.empty()) return join(field.choices, " | ", quoted);
  const bool low = field.lowest != -unlimited, high = field.highest != unlimited;
  std::string text;
  if (low && high && !field.low_open && !field.high_open)
    return bound(field.lowest) + " to " + bound(field.highest);
  if (low) text = (field.low_open ? "above " : "at least ") + bound(field.lowest);
  if (low && high) text += " and ";
  if (high) text += (field.high_open ? "below " : "at most ") + bound(field.highest);
  return text;
}

std::string text_of(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string text_of(const Field& field) {
  return std::visit(Overloaded{[](const std::int64_t* v) { return std::to_string(*v); },
                               [](const double* v) { return text_of(*v); },
                               [](const bool* v) { return std::string(*v ? ".true." : ".false."); },
                               [](const std::string* v) { return quoted(*v); },
                               [](const Strings* v) { return join(*v, ", ", quoted); },
                               [](const Numbers* v) {
                                 return join(*v, ", ",
                                             [](double number) { return text_of(number); });
                               }},
                    field.target);
}

std::string suggestion(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string near = nearest(wrong, names);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  return "; valid are " + join(names, ", ", [](const std::string& name) { return name; });
}

}  // namespace tern::deck::detail
