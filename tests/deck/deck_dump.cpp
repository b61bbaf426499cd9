/// Prints how our reader understands decks, for compare_f90nml.py and docs/deck.md.
///
///   deck_dump FILE...             one JSON object per line: {"deck": {group: {name: value}}}
///                                 or {"error": text}
///   deck_dump --mutants N SEED    N decks that random changes left acceptable:
///                                 {"text": ..., "deck": ...}
///   deck_dump --defaults          the values of an empty deck before anything is derived
///   deck_dump --reference         the reference page
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "deck/corpus.hpp"
#include "deck/detail/table.hpp"

namespace {

using nlohmann::json;
using namespace tern;

json to_json(deck::Deck deck) {
  json result = json::object();
  for (const auto& group : deck::detail::describe(deck).groups)
    for (const auto& field : group.fields)
      std::visit([&](const auto* value) { result[group.name][field.name] = *value; }, field.target);
  return result;
}

void dump_mutants(int wanted, std::uint64_t seed) {
  const std::vector<std::string> texts = test::seeds();
  test::Mutator mutator(seed);
  for (int found = 0; found < wanted;) {
    const std::string text = mutator.mutate(texts[mutator.below(texts.size())], texts);
    try {
      const json line = {{"text", text}, {"deck", to_json(deck::parse(text, "mutant"))}};
      std::puts(line.dump().c_str());
      ++found;
    } catch (const UserError&) {
    }
  }
}

void dump_file(const std::string& path) {
  json line;
  try {
    line["deck"] = to_json(deck::parse(test::file_text(path), path));
  } catch (const UserError& error) {
    line["error"] = error.what();
  }
  std::puts(line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "--mutants")
    dump_mutants(std::stoi(arguments[1]), std::stoull(arguments[2]));
  else if (arguments == std::vector<std::string>{"--reference"})
    std::fputs(deck::reference().c_str(), stdout);
  else if (arguments == std::vector<std::string>{"--defaults"})
    std::puts(to_json(deck::Deck{}).dump().c_str());
  else
    for (const std::string& path : arguments) dump_file(path);
}
