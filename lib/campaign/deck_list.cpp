#include "campaign/deck_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <tuple>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "deck/choices.hpp"
#include "deck/deck.hpp"
#include "report/run_list.hpp"
#include "words/suggestion.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t columns = 100;

/// First line of a deck, if a comment.
std::string headline(const fs::path& deck) {
  if (!fs::is_regular_file(deck)) return "";
  std::ifstream stream(deck);
  std::string line;
  std::getline(stream, line);
  const std::size_t first = line.find_first_not_of("! \t");
  if (first == std::string::npos || line[0] != '!') return "";
  return on_one_line(
      std::string_view(line).substr(first, line.find_last_not_of(" \t\r") + 1 - first));
}

/// input/ of the current folder, or of one above the program: the root of the project (build/PRESET/
/// trainer and its link), or share/tern of an installation.
std::optional<fs::path> folder_of_decks() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::path above = fs::current_path();
  for (int level = 0; level < 4; ++level) {
    for (const fs::path& folder : {above / "input", above / "share/tern/input"})
      if (fs::is_directory(folder, error)) return folder;
    above = level == 0 ? program.parent_path() : above.parent_path();
  }
  return std::nullopt;
}

/// Relative to the current folder if below it.
fs::path shown(const fs::path& path) {
  const fs::path relative = path.lexically_relative(fs::current_path());
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

/// N of a name such as h100x8_gpt; 1 without.
int gpus_in(const std::string& name) {
  const std::size_t at = name.find('x'), end = std::min(name.find('_'), name.size());
  int count = 1;
  if (at < end) std::from_chars(name.data() + at + 1, name.data() + end, count);
  return std::max(1, count);
}

struct ListedDeck {
  fs::path path;
  std::string name, headline;
  int gpus = 0;           // 0: for processors
  double parameters = 0;  // in about

  auto order() const { return std::tuple(name != "quickstart", gpus, parameters, headline, name); }
};

ListedDeck listed(const fs::path& path) {
  ListedDeck found{path, path.stem().string(), headline(path)};
  try {
    const deck::Deck deck = deck::read(path.string(), {});
    const auto hidden = static_cast<double>(deck.model.hidden);
    found.gpus = deck::compute_of(deck.precision) == deck::Compute::fp32 ? 0 : gpus_in(found.name);
    found.parameters = static_cast<double>(deck.model.vocabulary) * hidden +
                       12 * static_cast<double>(deck.model.layers) * hidden * hidden;
  } catch (const UserError&) {  // no deck yet, or of a model that is not here: by its name
    found.gpus = gpus_in(found.name);
  }
  return found;
}

std::vector<ListedDeck> decks_in(const fs::path& folder) {
  std::vector<ListedDeck> decks;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".in") decks.push_back(listed(entry.path()));
  std::sort(decks.begin(), decks.end(),
            [](const auto& a, const auto& b) { return a.order() < b.order(); });
  return decks;
}

/// Text in lines of at most `width` characters, all but the first with `indent` blanks before.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (length > 0 && length + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      length = 0;
    }
    if (length > 0) result += ' ', ++length;
    result += word;
    length += word.size();
  }
  return result;
}

/// A line for each deck, named by `name_of`, and its headline.
template <class NameOf>
void print(const std::vector<ListedDeck>& decks, const NameOf& name_of, std::ostream& out) {
  std::size_t width = 0;
  for (const ListedDeck& deck : decks) width = std::max(width, name_of(deck).size());
  const std::size_t indent = width + 2, least = 40;
  const std::size_t rest = std::max(least, columns - std::min(columns, indent));
  for (const ListedDeck& deck : decks)
    out << fmt::format("{:<{}}  {}\n", name_of(deck), width, wrapped(deck.headline, rest, indent));
}

}  // namespace

fs::path find_deck(const std::string& given) {
  std::error_code error;
  if (fs::exists(given, error) || given.find('/') != std::string::npos) return given;
  const auto folder = folder_of_decks();
  if (!folder) return given;
  for (const std::string& name : {given, given + ".in"})
    if (fs::is_regular_file(*folder / name, error)) return shown(*folder / name);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(*folder))
    if (entry.path().extension() == ".in") names.push_back(entry.path().stem().string());
  const std::string near = nearest(fs::path(given).stem().string(), names);
  user_error("{}: no such deck here or in {}{}; trainer --list shows all", on_one_line(given),
             shown(*folder).string(), near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

void list(const std::string& folder, std::ostream& out) {
  if (folder.empty()) {
    const auto input = folder_of_decks();
    if (!input)
      user_error("no folder input/ in {} nor above the program: name a deck by its path",
                 fs::current_path().string());
    out << fmt::format("decks of {}, to run with trainer NAME:\n", shown(*input).string());
    print(
        decks_in(*input), [](const ListedDeck& deck) { return deck.name; }, out);
    return;
  }
  std::error_code error;
  if (!fs::is_directory(folder, error))
    user_error("--list {}: no such folder; name one that holds runs or decks, e.g. runs", folder);
  const std::vector<report::ListedRun> runs = report::runs_in(folder);
  const std::vector<ListedDeck> decks =
      report::is_run(folder) ? std::vector<ListedDeck>() : decks_in(folder);
  print(
      decks, [](const ListedDeck& deck) { return deck.path.string(); }, out);
  if (!runs.empty()) out << report::table(runs);
  if (runs.empty() && decks.empty())
    user_error(
        "--list {}: it holds no run (a folder with run.json or metrics.jsonl) and no deck "
        "(*.in); name another folder, e.g. runs",
        folder);
}

}  // namespace tern::campaign
