#include "report/compared_run.hpp"

#include <fmt/format.h>

#include <cmath>

#include "report/detail/history.hpp"

namespace tern::report {

ComparedRun compare_run(const std::filesystem::path& directory, double own_loss) {
  const std::filesystem::path clean = (directory / "").lexically_normal().parent_path();
  ComparedRun other;
  other.name = clean.filename().string();
  other.directory = directory.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored)) {
    other.trouble = "there is no such directory";
    return other;
  }
  const detail::History history = detail::read_history(directory / "metrics.jsonl");
  const auto curve = history.curves.find("val/loss");
  const auto lost = history.not_finite.find("val/loss");
  if (lost != history.not_finite.end() &&
      (curve == history.curves.end() || lost->second.back() > curve->second.step.back())) {
    other.trouble = "its last val/loss is not finite";
  } else if (curve == history.curves.end()) {
    other.trouble = "its metrics.jsonl has no val/loss";
  } else {
    other.step = std::int64_t(curve->second.step.back());
    other.loss = curve->second.value.back();
    other.difference = own_loss - other.loss;
  }
  return other;
}

std::string in_words(const ComparedRun& other, std::string_view own_name) {
  if (!other.trouble.empty()) return other.trouble;
  const std::string its = fmt::format("{:.4f} at step {}", other.loss, other.step);
  if (std::isnan(other.difference)) return its + "; this run has no loss to compare";
  const std::string own =
      fmt::format("{}; {}, {:.4f}, is ", its, own_name, other.loss + other.difference);
  if (other.difference == 0) return own + "the same";
  return fmt::format("{}{} by {:.4f} ({:.1f}%)", own, other.difference < 0 ? "lower" : "higher",
                     std::abs(other.difference), 100 * std::abs(other.difference) / other.loss);
}

std::string compared_text(const std::vector<std::string>& directories, double own_loss) {
  std::string text;
  for (const std::string& directory : directories)
    text += fmt::format("{}compared with {}: {}", text.empty() ? "" : "\n", directory,
                        in_words(compare_run(directory, own_loss), "this run's"));
  return text;
}

}  // namespace tern::report
