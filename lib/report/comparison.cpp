#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "report/detail/deck_values.hpp"
#include "report/detail/page.hpp"
#include "report/detail/page_data.hpp"
#include "report/detail/pictures.hpp"
#include "report/run_list.hpp"

namespace tern::report {
namespace {

namespace fs = std::filesystem;

/// Rows of cells; the first row holds the titles.
using Table = std::vector<std::vector<std::string>>;

void require_runs(const std::vector<std::string>& directories) {
  if (directories.size() < 2)
    user_error("--compare takes at least two runs (e.g. trainer --compare runs/a runs/b); {} given",
               directories.size());
  std::error_code error;
  for (const std::string& directory : directories) {
    if (!fs::is_directory(directory, error))
      user_error("--compare {}: no such directory; trainer --list runs shows the runs there",
                 directory);
    if (!fs::is_regular_file(fs::path(directory) / "metrics.jsonl", error))
      user_error(
          "--compare {}: it holds no run (it has no metrics.jsonl); trainer --list {} shows the "
          "runs "
          "in it",
          directory, directory);
  }
  for (std::size_t i = 0; i < directories.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (fs::equivalent(directories[i], directories[j], error))
        user_error("--compare {}: the same run as {}; leave one of them out", directories[i],
                   directories[j]);
}

/// The directories' last parts where these differ, else the directories.
std::vector<std::string> names_of(const std::vector<std::string>& directories) {
  std::vector<std::string> last;
  for (const std::string& directory : directories)
    last.push_back(on_one_line(
        (fs::absolute(directory) / "").lexically_normal().parent_path().filename().string()));
  if (std::set(last.begin(), last.end()).size() == last.size()) return last;
  last.clear();
  for (const std::string& directory : directories) last.push_back(on_one_line(directory));
  return last;
}

/// A line per run, as of trainer --list, with what else the cards of a report tell.
Table results(const std::vector<std::string>& directories, const std::vector<std::string>& names) {
  Table table{{"run", "state", "step", "validation loss", "best", "time", "solved", "tokens/s"}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto history = detail::read_history(fs::path(directories[i]) / "metrics.jsonl");
    std::vector<std::string> row = cells_of(runs_in(directories[i]).at(0));
    row[0] = names[i];
    row.pop_back();  // the time of the last line
    const auto found = [&](const char* name, const auto& shown) {
      const auto at = history.curves.find(name);
      row.push_back(at == history.curves.end() ? "-" : shown(at->second.value.back()));
    };
    found("val/exact_match", [](double v) { return fmt::format("{:.1f}%", 100 * v); });
    found("train/throughput", detail::rate_text);
    table.push_back(std::move(row));
  }
  return table;
}

/// A line per value of the decks in which they differ.
Table differences(const std::vector<std::string>& directories,
                  const std::vector<std::string>& names) {
  std::vector<std::string> order;
  std::vector<std::map<std::string, std::string>> decks;
  for (const std::string& directory : directories) {
    decks.emplace_back();
    for (auto& [name, value] :
         detail::deck_values(read_text_or_empty(fs::path(directory) / "deck.in"))) {
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
      decks.back()[name] = value.empty() ? "(none)" : value;
    }
  }
  Table table{{"deck value"}};
  table[0].insert(table[0].end(), names.begin(), names.end());
  for (const std::string& name : order) {
    std::vector<std::string> row{name};
    for (const auto& deck : decks) row.push_back(deck.contains(name) ? deck.at(name) : "-");
    if (std::set(row.begin() + 1, row.end()).size() > 1) table.push_back(std::move(row));
  }
  return table;
}

std::string as_text(const Table& table) {
  constexpr std::size_t most = 40;  // characters of a cell
  std::vector<std::size_t> width(table[0].size());
  const auto cell = [](const std::string& text) { return excerpt(text, most); };
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], cell(row[i]).size());
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}  ", cell(row[i]), width[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string as_html(const Table& table) {
  std::string out = "<div class=\"wide\"><table class=\"texts\">\n";
  for (const auto& row : table) {
    out += "<tr>";
    for (const std::string& cell : row)
      out += (&row == &table[0] ? "<th>" : "<td>") + detail::escaped(cell);
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string compare(const std::vector<std::string>& directories) {
  require_runs(directories);
  const std::vector<std::string> names = names_of(directories);
  std::vector<detail::NamedHistory> runs;
  for (std::size_t i = 0; i < names.size(); ++i)
    runs.push_back({names[i], detail::read_history(fs::path(directories[i]) / "metrics.jsonl")});
  const auto figures = detail::compared_figures(runs);
  const Table outcome = results(directories, names), decks = differences(directories, names);
  const std::string none = "The decks of the runs are the same.";

  detail::Page page;
  page.title = fmt::format("{} runs compared", names.size());
  for (const std::string& name : names) page.about += (page.about.empty() ? "" : " · ") + name;
  page.lead = as_html(outcome) + "<h2>Deck values that differ</h2>\n" +
              (decks.size() > 1 ? as_html(decks) : "<p>" + none + "</p>\n");
  // In a folder of its own: on several ranks, each makes the page.
  detail::Pictures pictures = detail::pictures_of(
      figures, fs::temp_directory_path() / fmt::format("tern_compare_{}", unique_token()));
  page.pictures = std::move(pictures.all);
  std::vector<const detail::History*> histories;
  for (const detail::NamedHistory& run : runs) histories.push_back(&run.history);
  page.figures = detail::page_data(figures, histories);
  const fs::path file = fs::path(directories[0]) / "compare.html";
  if (!replace_file(file, detail::html(page)))
    user_error(
        "cannot write {}: free space there, or name first a run whose directory you may write",
        file.string());
  return as_text(outcome) + '\n' + (decks.size() > 1 ? as_text(decks) : none + '\n') + '\n' +
         (pictures.trouble.empty()
              ? ""
              : fmt::format("the page lacks pictures: {}\n", pictures.trouble)) +
         fmt::format("curves and tables: {}\n", file.string());
}

}  // namespace tern::report
