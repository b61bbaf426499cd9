/// Validation losses of other runs next to this one's: &evaluation compare_with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tern::report {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Reported without a grade: whether the runs had equal data, compute or parameters is stated in
/// their decks.
struct ComparedRun {
  std::string name, directory;  // name: the directory's last part
  std::int64_t step = 0;        // its last evaluation
  double loss = unknown;        // val/loss there
  double difference = unknown;  // this run's loss less that
  std::string trouble;          // why there is no loss; empty if there is one
};

/// From metrics.jsonl of the run. Does not throw.
ComparedRun compare_run(const std::filesystem::path& directory, double own_loss);

/// E.g. "1.2000 at step 400; this run's, 1.1000, is lower by 0.1000 (8.3%)", with `own_name` = "this
/// run's".
std::string in_words(const ComparedRun& other, std::string_view own_name);

/// A line for each directory; empty if there is none.
std::string compared_text(const std::vector<std::string>& directories, double own_loss);

}  // namespace tern::report
