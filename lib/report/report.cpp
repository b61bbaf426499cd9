#include "report/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "base/error.hpp"
#include "base/files.hpp"
#include "deck/renamed.hpp"
#include "report/compared_run.hpp"
#include "report/detail/history.hpp"
#include "report/detail/page.hpp"
#include "report/detail/page_data.hpp"
#include "report/detail/pictures.hpp"
#include "report/detail/plots.hpp"
#include "report/detail/verdict_section.hpp"
#include "report/run_list.hpp"
#include "report/verdict.hpp"

namespace tern::report {
namespace {

using std::filesystem::path;

// The last `lines` lines.
std::string tail(std::string text, int lines) {
  std::size_t at = text.size();
  while (lines-- >= 0 && at != std::string::npos && at > 0) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

/// Nothing if there is none, or if it is another version's.
std::optional<deck::Deck> deck_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return deck::parse_stored(text, "deck.in");
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// A line for each run that the deck names to compare with.
detail::Facts compared_runs(const deck::Deck& deck, const detail::History& history) {
  detail::Facts facts;
  const auto loss = history.curves.find("val/loss");
  const double own = loss == history.curves.end() ? unknown : loss->second.value.back();
  for (const std::string& directory : deck.evaluation.compare_with) {
    const ComparedRun other = compare_run(directory, own);
    facts.emplace_back("Compared with " + other.name, in_words(other, "this run's"));
  }
  return facts;
}

std::string about(const detail::History& history) {
  if (history.last_time == 0) return "no entry yet";
  return fmt::format("last entry {:%Y-%m-%d %H:%M} UTC",
                     fmt::gmtime(static_cast<std::time_t>(history.last_time)));
}

/// The page without its pictures.
detail::Page page_of(const path& directory, const detail::History& history) {
  detail::Page page;
  page.title = std::filesystem::absolute(directory).lexically_normal().filename().string();
  page.about = about(history);
  const std::string text = read_text_or_empty(directory / "deck.in");
  const auto deck = deck_of(text);
  const auto record = job::read_run_record(directory);
  page.cards = detail::cards_of({state(directory), record, deck, history});
  detail::Facts facts = detail::facts_of(record, history);
  if (const auto verdict = read_verdict(directory))
    page.lead = detail::verdict_section(*verdict, history.last_step);
  else if (deck)  // the verdict states them
    for (auto& fact : compared_runs(*deck, history)) facts.push_back(std::move(fact));
  page.samples = read_text_or_empty(directory / "samples.txt");
  page.sections = {detail::folded("Run", "", detail::fact_table(facts)),
                   detail::folded("Last values", "", detail::value_table(history)),
                   detail::folded_text("End of the log", "log",
                                       tail(read_text_or_empty(directory / "log.txt"), 40)),
                   detail::folded_text("Deck", "deck", text)};
  return page;
}

}  // namespace

Report::Report(path run_directory, Log& log) : directory_(std::move(run_directory)), log_(log) {}

void Report::make() {
  std::string problem;
  try {
    const detail::History history = detail::read_history(directory_ / "metrics.jsonl");
    const auto figures = detail::figures_of(history, detail::choose_plots(history));
    detail::Page page = page_of(directory_, history);
    if (page.lead.empty() && std::filesystem::exists(directory_ / "verdict.json"))
      problem = "verdict.json is no verdict";
    detail::Pictures pictures = detail::pictures_of(figures, directory_ / ".report");
    if (!pictures.trouble.empty()) problem = pictures.trouble;
    for (std::size_t i = 0; i < figures.size(); ++i)
      if (const std::string& svg = pictures.all[i].svg; !svg.empty())
        replace_file(directory_ / (figures[i].plot.file + ".svg"), detail::standalone_svg(svg));
    page.pictures = std::move(pictures.all);
    page.figures = detail::page_data(figures, {&history});
    if (!replace_file(directory_ / "report.html", detail::html(page)))
      problem = "the disk refused it";
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty() && !warned_)
    log_.warning("{}/report.html is incomplete: {}", directory_.string(), problem);
  warned_ = warned_ || !problem.empty();
}

void make_report(const path& run_directory, Log& log) { Report(run_directory, log).make(); }

void make_report(const path& run_directory) {
  Log console;
  make_report(run_directory, console);
}

}  // namespace tern::report
