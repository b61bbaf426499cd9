#include <fmt/format.h>

#include "deck/deck.hpp"
#include "deck/detail/assign.hpp"

namespace tern::deck {
namespace {

using namespace detail;

constexpr const char* opening = R"(# Deck reference

A deck is a file in Fortran namelist syntax; Python's f90nml reads it to the same values.

- A group opens with `&name` and closes with `/`; each occurs at most once, and what is not given keeps its
  default.
- `name = value`, several on a line if wanted, with or without commas between them. Names of groups and fields
  may be written in any case.
- Integers `1000`; reals `0.1`, `6e-4`, `1d-3`; logicals `.true.` `.false.` (also `T`, `F`, `true`, `false`);
  strings in `'` or `"`, a quote inside doubled: `'it''s'`.
- Lists have commas or blanks between values: `betas = 0.9, 0.95`; `3*0.5` repeats; `betas(2) = 0.95` sets one
  element.
- `!` starts a comment, outside of strings. Text is UTF-8.
- `--set group.name=value` replaces a value on the command line; strings need no quotes there.

All mistakes are reported at once, as `file:line:column: group.name: what is wrong; remedy`.

This page is generated from the schema (`deck::reference()`).
)";

/// Text escaped for a table cell.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

std::string code(const std::string& text) {
  return text.empty() ? std::string() : fmt::format("`{}`", cell(text));
}

std::string allowed(const Field& field) {
  if (field.choices.empty()) return range_of(field);
  std::string list;
  for (const std::string& choice : field.choices)
    list += (list.empty() ? "`'" : ", `'") + choice + "'`";
  return list;
}

}  // namespace

std::string reference() {
  Deck defaults;
  std::string text = opening;
  for (const Group& group : describe(defaults).groups) {
    text += fmt::format("\n## &{}\n\n{}\n\n", group.name, group.help);
    text += "| name | type | default | allowed | unit | meaning |\n|---|---|---|---|---|---|\n";
    for (const Field& field : group.fields)
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.name, type_of(field),
                          code(text_of(field)), allowed(field), field.units, cell(field.help));
  }
  return text;
}

}  // namespace tern::deck
