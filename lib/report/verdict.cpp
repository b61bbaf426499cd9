#include "report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.hpp"
#include "base/json.hpp"
#include "report/detail/findings.hpp"
#include "report/detail/history.hpp"

namespace tern::report {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* grade_names[] = {"good", "remark", "warning", "failure"};
constexpr const char* file_name = "verdict.json";

/// Whether the last answer is better than the baseline's.
Finding baseline_finding(const deck::Deck& deck, double own_loss) {
  const ComparedRun other = compare_run(deck.evaluation.baseline, own_loss);
  Finding finding;
  finding.name = "baseline";
  finding.found = in_words(other, "this run's last answer");
  finding.expected = fmt::format("last answer below val/loss of {}", other.name);
  finding.figure = other.difference;
  if (other.difference < 0) return finding;
  finding.grade = Grade::failure;
  const std::int64_t from = deck.objective.detach_from, last = deck.objective.supervision_steps - 1;
  if (!other.trouble.empty())
    finding.advice = fmt::format("train it first: the same data and steps in {}", other.directory);
  else if (from < last)
    finding.advice = fmt::format(
        "raise &objective detach_from above {}, so that gradients pass between answers", from);
  else
    finding.advice = "lower &objective reward: it also rewards a bad first answer";
  return finding;
}

ordered_json to_json(const Verdict& verdict) {
  ordered_json all = {{"verdict", verdict.word()},      {"succeeded", verdict.succeeded()},
                      {"preset", verdict.preset},       {"step", verdict.step},
                      {"loss", verdict.loss},           {"findings", ordered_json::array()},
                      {"beside", ordered_json::array()}};
  for (const Finding& f : verdict.findings)
    all["findings"].push_back({{"name", f.name},
                               {"grade", grade_name(f.grade)},
                               {"found", f.found},
                               {"expected", f.expected},
                               {"figure", f.figure},
                               {"advice", f.advice}});
  for (const ComparedRun& b : verdict.compared)
    all["beside"].push_back({{"name", b.name},
                             {"directory", b.directory},
                             {"step", b.step},
                             {"loss", b.loss},
                             {"difference", b.difference},
                             {"trouble", b.trouble}});
  return all;
}

double number_of(const ordered_json& value) {
  return value.is_null() ? unknown : value.get<double>();
}

Verdict from_json(const ordered_json& all) {
  Verdict verdict;
  all.at("preset").get_to(verdict.preset);
  all.at("step").get_to(verdict.step);
  verdict.loss = number_of(all.at("loss"));
  for (const auto& f : all.at("findings")) {
    const auto name =
        std::find(std::begin(grade_names), std::end(grade_names), f.at("grade").get<std::string>());
    // An unknown grade counts as failure.
    const auto grade = std::min<std::ptrdiff_t>(name - std::begin(grade_names), 3);
    verdict.findings.push_back({f.at("name"), static_cast<Grade>(grade), f.at("found"),
                                f.at("expected"), number_of(f.at("figure")), f.at("advice")});
  }
  for (const auto& b : all.at("beside"))
    verdict.compared.push_back({b.at("name"), b.at("directory"), b.at("step"),
                                number_of(b.at("loss")), number_of(b.at("difference")),
                                b.at("trouble")});
  return verdict;
}

}  // namespace

const char* grade_name(Grade grade) { return grade_names[static_cast<std::size_t>(grade)]; }

bool Verdict::succeeded() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& f) { return f.grade == Grade::failure; });
}

Verdict judge(const fs::path& run_directory, const deck::Deck& deck) {
  Verdict verdict =
      detail::make_verdict(detail::read_history(run_directory / "metrics.jsonl"), deck);
  if (!deck.evaluation.baseline.empty())
    verdict.findings.push_back(baseline_finding(deck, verdict.loss));
  for (const std::string& directory : deck.evaluation.compare_with)
    verdict.compared.push_back(compare_run(directory, verdict.loss));
  return verdict;
}

std::string text(const Verdict& verdict) {
  std::string out = fmt::format("verdict of recursive refinement at step {} (preset {}): {}\n",
                                verdict.step, verdict.preset, verdict.word());
  for (const Finding& f : verdict.findings) {
    out += fmt::format("  {:<22} {:<8} {} (expected: {})\n", f.name, grade_name(f.grade), f.found,
                       f.expected);
    if (!f.advice.empty()) out += fmt::format("  {:<31} advice: {}\n", "", f.advice);
  }
  if (verdict.compared.empty())
    return out +
           "  compared runs: none. Refinement can result from a bad first answer: name a plain "
           "GPT's run with &evaluation compare_with";
  out += "  validation losses of the compared runs:";
  for (const ComparedRun& b : verdict.compared)
    out += fmt::format("\n  {:<22} {}", b.name, in_words(b, "this run's last answer"));
  return out;
}

bool write_verdict(const fs::path& run_directory, const Verdict& verdict) {
  return replace_file(run_directory / file_name,
                      json_text(to_json(verdict), 2, InvalidUtf8::replaced) + "\n");
}

std::optional<Verdict> read_verdict(const fs::path& run_directory) {
  try {
    return from_json(parse_ordered_json(read_text_or_empty(run_directory / file_name)));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tern::report
