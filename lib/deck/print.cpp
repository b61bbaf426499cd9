#include <fmt/format.h>

#include "base/error.hpp"
#include "deck/deck.hpp"
#include "deck/detail/table.hpp"

namespace tern::deck {
namespace {

using namespace detail;

std::string comment(const Field& field, const Field& standard) {
  std::string text = field.help;
  if (!field.units.empty()) text += " [" + field.units + "]";
  const std::string range = range_of(field);
  if (!range.empty()) text += "; " + range;
  const std::string value = text_of(standard);
  text += "; default " + (value.empty() ? std::string("none") : value);
  return text;
}

}  // namespace

std::string print(const Deck& deck, bool help) {
  Deck copy = deck, defaults;
  const Table table = describe(copy), standard = describe(defaults);
  std::string text;
  for (std::size_t g = 0; g < table.groups.size(); ++g) {
    const Group& group = table.groups[g];
    if (help) text += fmt::format("{}! {}\n", g > 0 ? "\n" : "", group.help);
    text += fmt::format("&{}\n", group.name);
    for (std::size_t f = 0; f < group.fields.size(); ++f) {
      const Field& field = group.fields[f];
      const std::string value = text_of(field);
      // An empty list has no namelist value: its name goes into a comment.
      const std::string line =
          fmt::format("{} {} = {}", value.empty() ? "!" : " ", field.name, value);
      if (help)
        text += fmt::format("{:<36} ! {}\n", line, comment(field, standard.groups[g].fields[f]));
      else
        text += line + "\n";
    }
    text += "/\n";
  }
  return text;
}

}  // namespace tern::deck
