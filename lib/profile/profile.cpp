#include "profile/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.hpp"
#include "profile/detail/operation_name.hpp"
#include "profile/detail/tracer.hpp"

namespace tern::profile {
namespace {

using detail::Event;
using detail::Recording;

struct Row {
  std::string operation;
  std::size_t calls = 0, kernels = 0;
  double seconds = 0;
  ops::Work work;
};

std::string name_of(const Recording& r, const Event& event) {
  return detail::operation_name(
      event.call >= 0 ? r.calls[static_cast<std::size_t>(event.call)].operation : event.kernel);
}

std::vector<Row> rows_of(const Recording& r) {
  std::map<std::string, Row> rows;
  std::set<std::int64_t> counted;
  for (const Event& event : r.events) {
    const std::string name = name_of(r, event);
    Row& row = rows[name];
    row.operation = name;
    ++row.kernels;
    row.seconds += event.seconds;
    if (event.call >= 0 && !counted.insert(event.call).second) continue;
    ++row.calls;
    if (event.call < 0) continue;
    const ops::Work& work = r.calls[static_cast<std::size_t>(event.call)].work;
    row.work.flops += work.flops, row.work.bytes += work.bytes;
  }
  std::vector<Row> result;
  for (auto& [name, row] : rows) result.push_back(std::move(row));
  std::stable_sort(result.begin(), result.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return result;
}

/// Time in which any event was in progress.
double busy_seconds(const Recording& r) {
  double busy = 0, until = 0;
  for (const Event& event : r.events) {
    const double end = event.begin + event.seconds;
    busy += std::max(0.0, end - std::max(until, event.begin));
    until = std::max(until, end);
  }
  return busy;
}

/// Fraction of the ceilings that an operation reaches; 0: unknown.
double reached(const Row& row, const Ceilings& ceilings) {
  const bool in_fp8 = row.operation.starts_with("fp8_linear") && ceilings.fp8_flops > 0;
  const double flops = in_fp8 ? ceilings.fp8_flops : ceilings.flops;
  double least = 0;
  if (flops > 0) least = row.work.flops / flops;
  if (ceilings.bytes > 0) least = std::max(least, row.work.bytes / ceilings.bytes);
  return row.seconds > 0 ? least / row.seconds : 0;
}

std::string figure(const char* format, double value) {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "";
}

}  // namespace

Profile::Profile(Fence fence) : fence_(std::move(fence)) {
  fence_();
  tracer_ = detail::make_tracer(trouble_);
}

Profile::~Profile() = default;

void Profile::finish() {
  fence_();
  recording_ = std::make_unique<Recording>(tracer_ ? tracer_->finish() : Recording{});
  tracer_.reset();
  std::stable_sort(recording_->events.begin(), recording_->events.end(),
                   [](const Event& a, const Event& b) { return a.begin < b.begin; });
}

std::string Profile::table(std::int64_t step, const Ceilings& ceilings) const {
  const Recording& r = *recording_;
  std::string out = fmt::format(
      "step {}: {:.1f} ms, of which {:.1f} ms outside of the operations below; {} kernels\n\n",
      step, 1e3 * r.seconds, 1e3 * (r.seconds - busy_seconds(r)), r.events.size());
  constexpr const char* line = "{:<34} {:>7} {:>8} {:>10} {:>9} {:>9} {:>8} {:>11}\n";
  out += fmt::format(line, "operation", "calls", "kernels", "ms", "fraction", "TFLOP/s", "TB/s",
                     "of ceiling");
  for (const Row& row : rows_of(r))
    out += fmt::format(line, row.operation, row.calls, row.kernels,
                       fmt::format("{:.3f}", 1e3 * row.seconds),
                       fmt::format("{:.1f}%", 100 * row.seconds / r.seconds),
                       figure("{:.3g}", 1e-12 * row.work.flops / row.seconds),
                       figure("{:.3g}", 1e-12 * row.work.bytes / row.seconds),
                       figure("{:.0f}%", 100 * reached(row, ceilings)));
  return out;
}

std::string Profile::trace(int rank) const {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", rank},
                    {"args", {{"name", fmt::format("rank {}", rank)}}}});
  for (const Event& event : recording_->events) {
    Json entry{{"name", name_of(*recording_, event)}, {"ph", "X"},   {"ts", 1e6 * event.begin},
               {"dur", 1e6 * event.seconds},          {"pid", rank}, {"tid", event.lane}};
    entry["args"]["kernel"] = event.kernel;
    if (event.call >= 0) {
      const ops::Work& work = recording_->calls[static_cast<std::size_t>(event.call)].work;
      entry["args"]["call"] = event.call;
      if (work.flops > 0) entry["args"]["flops"] = work.flops;
      if (work.bytes > 0) entry["args"]["bytes"] = work.bytes;
    }
    events.push_back(std::move(entry));
  }
  return json_text(Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}, -1,
                   InvalidUtf8::replaced);
}

}  // namespace tern::profile
