#include "report/metrics.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "report/detail/deck_values.hpp"

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

/// Empty if there is no such file. One that cannot be read is not empty.
std::string text_of(const std::filesystem::path& file) {
  try {
    return read_text(file);
  } catch (const FileError& error) {
    if (error.code == ENOENT) return {};
    user_error("{}: the run resumes with its metrics; check its permissions and its disk",
               error.what());
  }
}

std::filesystem::path restore(const std::filesystem::path& file, std::int64_t last_step,
                              bool evaluated, const std::string& unwritten) {
  const std::string all = text_of(file);
  std::string kept;
  const auto keep = [&](const Line& line) {
    if (line.ended && last_step >= 0 && is_kept(line.text, last_step, evaluated))
      kept.append(line.text) += '\n';
  };
  for (const Line& line : Lines(all)) keep(line);
  // The disk may have taken them after the checkpoint.
  for (const Line& line : Lines(unwritten))
    if (kept.find(line.text) == kept.npos) keep(line);
  try {
    if (kept != all) write_durably(file, kept);
  } catch (const FileError& error) {
    user_error("{}: the run resumes with its metrics; check &output directory and its disk",
               error.what());
  }
  return file;
}

}  // namespace

Metrics::Metrics(std::filesystem::path run_directory, std::int64_t resume_step, bool evaluated,
                 const std::string& unwritten)
    : file_(restore(run_directory / "metrics.jsonl", resume_step, evaluated, unwritten)),
      events_(run_directory, resume_step, evaluated) {
  const std::string deck = read_text_or_empty(run_directory / "deck.in");
  if (deck.empty()) return;
  const std::int64_t step = std::max<std::int64_t>(0, resume_step);
  events_.write_text(unix_now(), step, "deck", deck);
  events_.write_settings(unix_now(), step, detail::deck_values(deck));
}

void Metrics::show(std::int64_t step, const std::string& tag, const std::string& text) {
  events_.write_text(unix_now(), step, tag, text);
}

bool Metrics::sync() {
  events_complete_ = events_.sync();
  return file_.sync();
}

void Metrics::write(std::int64_t step, const Values& values, const Texts& texts) {
  const double seconds = unix_now();
  nlohmann::ordered_json entry = {{"step", step}, {"time", seconds}};
  for (const auto& [name, value] : values) entry[name] = value;
  for (const auto& [name, text] : texts) entry[name] = text;
  file_.append(json_text(entry, -1, InvalidUtf8::replaced) + "\n");
  events_.write(seconds, step, values);
}

}  // namespace tern::report
