#include "report/report.hpp"

#include <chrono>

#include "base/error.hpp"
#include "base/files.hpp"
#include "deck/renamed.hpp"
#include "report/compared_run.hpp"
#include "report/detail/history.hpp"
#include "report/detail/page.hpp"
#include "report/detail/plots.hpp"
#include "report/detail/verdict_section.hpp"
#include "report/verdict.hpp"

namespace tern::report {
namespace {

using std::filesystem::path;

const char* reason(detail::Ending ending) {
  switch (ending) {
    case detail::Ending::not_found:
      return "gnuplot was not found (Debian, Ubuntu: gnuplot-nox)";
    case detail::Ending::timed_out:
      return "gnuplot took too long and was ended";
    default:
      return "gnuplot failed";
  }
}

// The last `lines` lines.
std::string tail(std::string text, int lines) {
  std::size_t at = text.size();
  while (lines-- >= 0 && at != std::string::npos && at > 0) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

/// A line for each run that the deck names to compare with.
detail::Facts compared_runs(const std::string& deck, const detail::History& history) {
  detail::Facts facts;
  const auto loss = history.curves.find("val/loss");
  const double own = loss == history.curves.end() ? unknown : loss->second.value.back();
  try {
    for (const std::string& directory : deck::parse_stored(deck, "deck.in").evaluation.beside) {
      const ComparedRun other = compare_run(directory, own);
      facts.emplace_back("Compared with " + other.name, in_words(other, "this run's"));
    }
  } catch (const UserError&) {  // another version's deck
  }
  return facts;
}

}  // namespace

Report::Report(path run_directory, Log& log) : directory_(std::move(run_directory)), log_(log) {}

void Report::make() {
  const path folder = directory_ / ".report";
  std::error_code ignored;
  std::string problem;
  try {
    // Of an interrupted report, or a link: gnuplot writes into a folder just made.
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const detail::History history = detail::read_history(directory_ / "metrics.jsonl");
    const auto plots = detail::choose_plots(history);
    detail::Page page;
    page.title = std::filesystem::absolute(directory_).lexically_normal().filename().string();
    const auto record = job::read_run_record(directory_);
    page.facts = detail::facts_of(record, history);
    if (const auto verdict = read_verdict(directory_))
      page.verdict = detail::verdict_section(*verdict, history.last_step);
    else if (std::filesystem::exists(directory_ / "verdict.json"))
      problem = "verdict.json is no verdict";
    page.deck = read_text_or_empty(directory_ / "deck.in");
    if (page.verdict.empty())  // which states them
      for (auto& fact : compared_runs(page.deck, history)) page.facts.push_back(std::move(fact));
    page.samples = read_text_or_empty(directory_ / "samples.txt");
    page.log = tail(read_text_or_empty(directory_ / "log.txt"), 40);
    const auto ending = detail::draw(history, plots, folder, std::chrono::seconds(30));
    if (ending != detail::Ending::success) problem = reason(ending);
    for (const detail::Plot& plot : plots) {
      const std::string svg =
          detail::inline_svg(read_text_or_empty(folder / (plot.file + ".svg")), plot.title);
      if (svg.empty()) continue;
      page.pictures.push_back({plot.title, svg});
      replace_file(directory_ / (plot.file + ".svg"), detail::standalone_svg(svg));
    }
    if (!replace_file(directory_ / "report.html", detail::html(page, history)))
      problem = "the disk refused it";
  } catch (const std::exception& error) {
    problem = error.what();
  }
  std::filesystem::remove_all(folder, ignored);
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
