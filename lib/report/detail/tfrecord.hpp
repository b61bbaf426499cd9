/// TFRecord framing and TensorBoard's protocol-buffer messages.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::report::detail {

/// Length, its masked CRC, data, its masked CRC; all little-endian.
std::string frame_record(std::string_view data);

/// Takes the next record off the front of `file`; nothing at the end, or where bytes are damaged or
/// truncated.
std::optional<std::string_view> take_record(std::string_view& file);

// Event messages.
std::string version_event(double unix_seconds);
/// SessionLog START: readers drop events with this step or a later one.
std::string start_event(double unix_seconds, std::int64_t step);

/// Bars of a histogram: `height` around each `at`, in ascending order.
struct Bars {
  std::vector<double> at, height;
};
struct Scalar {
  std::string tag;
  double value;                  // stored as float
  std::string description = {};  // Markdown; readers keep the first one of a tag
};
/// Scalars, and histograms with a bucket per bar.
std::string summary_event(double unix_seconds, std::int64_t step,
                          const std::vector<Scalar>& scalars,
                          const std::map<std::string, Bars>& histograms = {});
/// A text for the text plugin; TensorBoard renders it as Markdown.
std::string text_event(double unix_seconds, std::int64_t step, std::string_view tag,
                       std::string_view text);

/// Settings of a run for the hparams plugin: names, and values in namelist syntax, which become
/// numbers, logicals or strings.
std::string hparams_event(double unix_seconds, std::int64_t step,
                          const std::vector<std::pair<std::string, std::string>>& settings);

/// Step of an Event (0 if it has none); nothing if the message is malformed.
std::optional<std::int64_t> event_step(std::string_view event);

}  // namespace tern::report::detail
