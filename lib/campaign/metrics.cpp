#include "campaign/metrics.hpp"

#include <chrono>

#include "base/error.hpp"
#include "base/json.hpp"

namespace tern::campaign {
namespace {

// The step of a line of metrics.jsonl; -1 if it is no such line.
std::int64_t step_of(std::string_view line) {
  const auto entry = try_json(line);
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer())
    return -1;
  return entry["step"].get<std::int64_t>();
}

std::filesystem::path drop_lines_beyond(const std::filesystem::path& file, std::int64_t last_step) {
  const std::string all = detail::read_file(file);
  std::string kept;
  if (last_step > 0) {
    for (std::size_t from = 0, end; (end = all.find('\n', from)) != std::string::npos;
         from = end + 1) {
      const std::string_view line(all.data() + from, end + 1 - from);
      const std::int64_t step = step_of(line);
      if (step >= 0 && step <= last_step) kept += line;
    }
  }
  if (kept.size() != all.size() && !detail::replace_file(file, kept))
    user_error("cannot rewrite {} to resume: check &output directory and its disk", file.string());
  return file;
}

}  // namespace

Metrics::Metrics(std::filesystem::path run_directory, std::int64_t resume_step)
    : file_(drop_lines_beyond(run_directory / "metrics.jsonl", resume_step)),
      events_(run_directory, resume_step) {}

void Metrics::write(std::int64_t step, const Values& values, const Texts& texts) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double seconds = 1e-3 * double(std::chrono::round<std::chrono::milliseconds>(now).count());
  nlohmann::ordered_json entry = {{"step", step}, {"time", seconds}};
  for (const auto& [name, value] : values) entry[name] = value;
  for (const auto& [name, text] : texts) entry[name] = text;
  complete_ = file_.append(json_text(entry, -1, InvalidUtf8::replaced) + "\n") && complete_;
  complete_ = events_.write(seconds, step, values) && complete_;
}

}  // namespace tern::campaign
