#include "report/metrics.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace tern::report {
namespace {

// Whether a line of metrics.jsonl belongs to the run up to `last_step`.
bool is_kept(std::string_view line, std::int64_t last_step, bool evaluated) {
  const auto entry = try_json(line);
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer())
    return false;
  const auto step = entry["step"].get<std::int64_t>();
  return step < last_step || (step == last_step && (evaluated || !entry.contains("val/loss")));
}

/// To the millisecond.
double unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return 1e-3 * double(std::chrono::round<std::chrono::milliseconds>(now).count());
}

std::filesystem::path drop_lines_beyond(const std::filesystem::path& file, std::int64_t last_step,
                                        bool evaluated) {
  const std::string all = read_text_or_empty(file);
  std::string kept;
  if (last_step >= 0) {
    for (std::size_t from = 0, end; (end = all.find('\n', from)) != std::string::npos;
         from = end + 1) {
      const std::string_view line(all.data() + from, end + 1 - from);
      if (is_kept(line, last_step, evaluated)) kept += line;
    }
  }
  if (kept.size() != all.size() && !replace_file(file, kept))
    user_error("cannot rewrite {} to resume: check &output directory and its disk", file.string());
  return file;
}

}  // namespace

Metrics::Metrics(std::filesystem::path run_directory, std::int64_t resume_step, bool evaluated)
    : file_(drop_lines_beyond(run_directory / "metrics.jsonl", resume_step, evaluated)),
      events_(run_directory, resume_step, evaluated) {
  const std::string deck = read_text_or_empty(run_directory / "deck.in");
  if (deck.empty()) return;
  complete_ = events_.write_text(unix_now(), std::max<std::int64_t>(0, resume_step), "deck", deck);
}

void Metrics::sync() {
  complete_ = file_.sync() && complete_;
  complete_ = events_.sync() && complete_;
}

void Metrics::write(std::int64_t step, const Values& values, const Texts& texts) {
  const double seconds = unix_now();
  nlohmann::ordered_json entry = {{"step", step}, {"time", seconds}};
  for (const auto& [name, value] : values) entry[name] = value;
  for (const auto& [name, text] : texts) entry[name] = text;
  complete_ = file_.append(json_text(entry, -1, InvalidUtf8::replaced) + "\n") && complete_;
  complete_ = events_.write(seconds, step, values) && complete_;
}

}  // namespace tern::report
