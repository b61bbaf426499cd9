#include "report/run_list.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "job/exit_code.hpp"
#include "job/run_lock.hpp"
#include "job/run_record.hpp"
#include "report/detail/history.hpp"
#include "words/numbers.hpp"

namespace tern::report {
namespace {

namespace fs = std::filesystem;

std::string state_of(const fs::path& directory, const std::optional<job::RunRecord>& record,
                     std::int64_t step) {
  if ((!record || !record->exit_code) && job::in_use(directory)) return "running";
  if (!record) return "no run.json";
  if (!record->exit_code) return "killed or failed";
  switch (*record->exit_code) {
    case job::finished:
      return step < record->steps ? "ended early" : "finished";
    case job::not_saved:
      return "not saved";
    case job::interrupted:
      return "interrupted";
    case job::diverged:
      return "diverged";
    case job::verdict_failed:
      return "verdict failed";
    default:
      return fmt::format("exit code {}", *record->exit_code);
  }
}

ListedRun run_at(const fs::path& directory) {
  ListedRun run;
  run.directory = directory.string();
  const detail::History history = detail::read_history(directory / "metrics.jsonl");
  const auto record = job::read_run_record(directory);
  run.step = history.last_step;
  if (record) run.steps = record->steps;
  run.state = state_of(directory, record, run.step);
  run.last_time = history.last_time;
  if (const auto found = history.curves.find("system/seconds"); found != history.curves.end())
    run.seconds = found->second.value.back();
  const auto found = history.curves.find("val/loss");
  if (found == history.curves.end()) return run;
  const auto& [step, loss] = found->second;
  run.loss = loss.back();
  for (std::size_t i = 0; i < loss.size(); ++i)
    if (step[i] > 0 && !(run.best <= loss[i]))
      run.best = loss[i], run.best_step = static_cast<std::int64_t>(step[i]);
  return run;
}

}  // namespace

std::string state(const fs::path& directory) {
  return state_of(directory, job::read_run_record(directory),
                  detail::read_history(directory / "metrics.jsonl").last_step);
}

bool is_run(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / "run.json", error) ||
         fs::is_regular_file(directory / "metrics.jsonl", error);
}

std::vector<ListedRun> runs_in(const fs::path& folder) {
  if (is_run(folder)) return {run_at(folder)};
  std::vector<fs::path> directories;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && is_run(entry.path())) directories.push_back(entry.path());
  std::sort(directories.begin(), directories.end());
  std::vector<ListedRun> runs;
  for (const fs::path& directory : directories) runs.push_back(run_at(directory));
  return runs;
}

std::vector<std::string> cells_of(const ListedRun& run) {
  const auto number = [](double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.4f}", value);
  };
  return {run.directory,
          run.state,
          run.steps > 0 ? fmt::format("{}/{}", run.step, run.steps) : fmt::format("{}", run.step),
          number(run.loss),
          std::isnan(run.best) ? "-" : fmt::format("{:.4f} at {}", run.best, run.best_step),
          std::isnan(run.seconds) ? "-" : duration(run.seconds),
          run.last_time > 0 ? fmt::format("{:%Y-%m-%d %H:%M}",
                                          fmt::gmtime(static_cast<std::time_t>(run.last_time)))
                            : "-"};
}

std::string table(const std::vector<ListedRun>& runs) {
  std::vector<std::vector<std::string>> rows{
      {"run", "state", "step", "validation loss", "best", "time", "last line (UTC)"}};
  for (const ListedRun& run : runs) rows.push_back(cells_of(run));
  std::vector<std::size_t> width(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], width[i]);
    text += row.back() + '\n';
  }
  return text;
}

}  // namespace tern::report
