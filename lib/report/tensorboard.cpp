#include "report/tensorboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/lines.hpp"
#include "report/detail/history.hpp"
#include "report/detail/tfrecord.hpp"
#include "report/detail/titles.hpp"

namespace tern::report {
namespace {

constexpr std::string_view prefix = "events.out.tfevents.";

std::vector<std::filesystem::path> event_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Also drops a truncated or damaged end of the file.
void drop_events_beyond(const std::filesystem::path& file, std::int64_t last_step, bool evaluated) {
  const std::string all = read_text_or_empty(file);
  std::string kept;
  std::string_view rest = all;
  while (const auto record = detail::take_record(rest)) {
    const auto step = detail::event_step(*record);
    if (!step || *step > last_step) continue;
    if (*step == last_step && !evaluated && record->find("val/") != record->npos) continue;
    kept += detail::frame_record(*record);
  }
  if (kept.size() != all.size() && !replace_file(file, kept))
    user_error("cannot rewrite {} to resume: check &output directory and its disk", file.string());
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string tag_of(const std::string& metric) {
  const std::string_view name = std::string_view(metric).substr(metric.find('/') + 1);
  if (name == "loss" || (name.starts_with("loss_") && name != "loss_scale"))
    return "Loss/" + metric;
  const bool score = name.starts_with("exact_match") || name == "well_formed" || name == "accuracy";
  return score ? "Score/" + metric : metric;
}

std::filesystem::path next_file(const std::filesystem::path& directory, std::int64_t resume_step,
                                bool evaluated) {
  long long seconds = static_cast<long long>(unix_now());
  for (const auto& file : event_files(directory)) {
    const std::string number = file.filename().string().substr(prefix.size());
    constexpr long long last = 9'999'999'999;  // ten digits, so that names sort by time
    seconds = std::max(seconds, std::min(std::atoll(number.c_str()), last) + 1);
    if (resume_step >= 0)
      drop_events_beyond(file, resume_step, evaluated);
    else
      std::filesystem::remove(file);
  }
  return directory / fmt::format("{}{:010}.tern", prefix, seconds);
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& directory, std::int64_t resume_step,
                         bool evaluated)
    : file_(next_file(directory, resume_step, evaluated)) {
  const double now = unix_now();
  file_.append(detail::frame_record(detail::version_event(now)));
  if (resume_step >= 0)
    file_.append(detail::frame_record(detail::start_event(now, resume_step + 1)));
}

bool EventWriter::write(double unix_seconds, std::int64_t step,
                        const std::vector<std::pair<std::string, double>>& values) {
  std::vector<detail::Scalar> scalars;
  std::map<std::string, std::map<double, double>> profiles;
  for (const auto& [name, value] : values) {
    if (const auto point = detail::profile_point(name))
      profiles[point->first][point->second] = value;
    else
      scalars.push_back(
          {tag_of(name), value, described_.insert(name).second ? detail::title_of(name) : ""});
  }
  std::map<std::string, detail::Bars> histograms;
  for (const auto& [name, points] : profiles)
    for (const auto& [at, height] : points) {
      histograms[name].at.push_back(at);
      histograms[name].height.push_back(height);
    }
  return file_.append(
      detail::frame_record(detail::summary_event(unix_seconds, step, scalars, histograms)));
}

bool EventWriter::write_text(double unix_seconds, std::int64_t step, std::string_view tag,
                             std::string_view text) {
  std::string shown;  // Markdown shows lines indented by four spaces verbatim
  for (const Line& line : Lines(text)) shown.append("    ").append(line.text).append("\n");
  return file_.append(detail::frame_record(detail::text_event(unix_seconds, step, tag, shown)));
}

bool EventWriter::write_settings(double unix_seconds, std::int64_t step,
                                 const std::vector<std::pair<std::string, std::string>>& settings) {
  return file_.append(detail::frame_record(detail::hparams_event(unix_seconds, step, settings)));
}

}  // namespace tern::report
