/// TFRecord framing and the few protocol-buffer messages of TensorBoard that we write.
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

/// Takes the next record off the front of `file`; nothing at the end, and where bytes are damaged
/// or cut off.
std::optional<std::string_view> take_record(std::string_view& file);

// Event messages.
std::string version_event(double unix_seconds);
/// SessionLog START: readers forget what they have with this step or a later one.
std::string start_event(double unix_seconds, std::int64_t step);

/// Bars over a line: `height` around each `at`, which rise.
struct Bars {
  std::vector<double> at, height;
};
/// Scalars (stored as float), and histograms whose buckets hold the bars.
std::string summary_event(double unix_seconds, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values,
                          const std::map<std::string, Bars>& histograms = {});
/// A text of the text plugin; TensorBoard reads it as Markdown.
std::string text_event(double unix_seconds, std::int64_t step, std::string_view tag,
                       std::string_view text);

/// The step of an Event (0 if it has none), or nothing if the message is malformed.
std::optional<std::int64_t> event_step(std::string_view event);

}  // namespace tern::report::detail
