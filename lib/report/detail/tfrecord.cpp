#include "report/detail/tfrecord.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/hashes.hpp"

namespace tern::report::detail {
namespace {

// TFRecord masks (rotates and offsets) checksums, so that a file of records can itself be a record.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

template <class Unsigned>
void put_little_endian(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) out.push_back(char(value >> (8 * i) & 0xff));
}

std::uint64_t get_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Protocol buffers: a field is a varint of (number << 3 | wire type), then its value.
enum Wire : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(char((value & 0x7f) | 0x80));
  out.push_back(char(value));
}

void put_tag(std::string& out, unsigned field, Wire wire) { put_varint(out, field << 3 | wire); }

void put_bytes(std::string& out, unsigned field, std::string_view value) {
  put_tag(out, field, bytes);
  put_varint(out, value.size());
  out += value;
}

std::optional<std::uint64_t> take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return {};
}

bool skip(std::string_view& in, std::uint64_t n) {
  if (n > in.size()) return false;
  in.remove_prefix(n);
  return true;
}

// Event: wall_time 1 (double), step 2 (int64).
std::string event_head(double unix_seconds, std::int64_t step) {
  std::string out;
  put_tag(out, 1, fixed64);
  put_little_endian(out, std::bit_cast<std::uint64_t>(unix_seconds));
  put_tag(out, 2, varint);
  put_varint(out, static_cast<std::uint64_t>(step));
  return out;
}

// SummaryMetadata: plugin_data 1 (plugin_name 1, content 2), summary_description 3.
std::string plugin_metadata(std::string_view plugin, std::string_view content,
                            std::string_view description) {
  std::string data, out;
  put_bytes(data, 1, plugin);
  if (!content.empty()) put_bytes(data, 2, content);
  put_bytes(out, 1, data);
  if (!description.empty()) put_bytes(out, 3, description);
  return out;
}

// Summary.Value: tag 1 (string), simple_value 2 (float), metadata 9.
std::string scalar_value(const Scalar& scalar) {
  std::string out;
  put_bytes(out, 1, scalar.tag);
  put_tag(out, 2, fixed32);
  put_little_endian(out, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
  if (!scalar.description.empty())
    put_bytes(out, 9, plugin_metadata("scalars", "", scalar.description));
  return out;
}

void put_double(std::string& out, double value) {
  put_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

/// Upper limits of the bars' buckets; between bars that are not adjacent lies an empty bucket.
struct Buckets {
  std::vector<double> limits, counts;
};
Buckets buckets_of(const Bars& bars) {
  double half = 0.5;  // half the smallest distance between two bars
  for (std::size_t i = 1; i < bars.at.size(); ++i)
    half = std::min(half, (bars.at[i] - bars.at[i - 1]) / 2);
  Buckets buckets;
  for (std::size_t i = 0; i < bars.at.size(); ++i) {
    const double low = bars.at[i] - half, high = bars.at[i] + half;
    if (i > 0 && low > buckets.limits.back() + half / 2) {
      buckets.limits.push_back(low);
      buckets.counts.push_back(0);
    }
    buckets.limits.push_back(high);
    buckets.counts.push_back(bars.height[i]);
  }
  return buckets;
}

// HistogramProto: min 1, max 2, num 3, sum 4, sum_squares 5, bucket_limit 6 and bucket 7 (packed).
std::string histogram(const Bars& bars) {
  const Buckets buckets = buckets_of(bars);
  const double half = buckets.limits[0] - bars.at[0];
  double figures[5] = {bars.at.front() - half, bars.at.back() + half};
  for (std::size_t i = 0; i < bars.at.size(); ++i)
    for (int power = 0; power < 3; ++power)
      figures[2 + power] += bars.height[i] * std::pow(bars.at[i], power);
  std::string out;
  for (unsigned field = 1; field <= 5; ++field) {
    put_tag(out, field, fixed64);
    put_double(out, figures[field - 1]);
  }
  for (const auto& [field, values] : {std::pair{6u, &buckets.limits}, {7u, &buckets.counts}}) {
    std::string packed;
    for (const double value : *values) put_double(packed, value);
    put_bytes(out, field, packed);
  }
  return out;
}

// Summary.Value: tag 1, histo 5.
std::string histogram_value(std::string_view tag, const Bars& bars) {
  std::string out;
  put_bytes(out, 1, tag);
  put_bytes(out, 5, histogram(bars));
  return out;
}

// Summary.Value: tag 1, tensor 8 (TensorProto: dtype 1, string_val 8; a scalar has no shape),
// metadata 9.
std::string text_value(std::string_view tag, std::string_view text) {
  constexpr std::uint64_t string_type = 7;  // DT_STRING
  std::string tensor, out;
  put_tag(tensor, 1, varint);
  put_varint(tensor, string_type);
  put_bytes(tensor, 2, "");
  put_bytes(tensor, 8, text);
  put_bytes(out, 1, tag);
  put_bytes(out, 8, tensor);
  put_bytes(out, 9, plugin_metadata("text", "", ""));
  return out;
}

/// The text between the quotes of a namelist string; nothing if `value` is another thing.
std::optional<std::string> unquoted(const std::string& value) {
  if (value.size() < 2 || value.front() != '\'') return std::nullopt;
  std::string text;
  for (std::size_t at = 1; at < value.size(); ++at) {
    const bool quote = value[at] == '\'';
    if (quote && at + 1 == value.size()) return text;
    if (quote && value[++at] != '\'') return std::nullopt;  // a list of strings
    text += value[at];
  }
  return std::nullopt;
}

// google.protobuf.Value: number_value 2, string_value 3, bool_value 4.
std::string hparam(const std::string& value) {
  std::string out;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value == ".true." || value == ".false.") {
    put_tag(out, 4, varint);
    put_varint(out, value == ".true." ? 1 : 0);
  } else if (!value.empty() && *end == '\0') {
    put_tag(out, 2, fixed64);
    put_double(out, number);
  } else {
    put_bytes(out, 3, unquoted(value).value_or(value));
  }
  return out;
}

}  // namespace

std::string frame_record(std::string_view data) {
  std::string out;
  put_little_endian(out, std::uint64_t(data.size()));
  put_little_endian(out, masked(crc32c(out)));
  out += data;
  put_little_endian(out, masked(crc32c(data)));
  return out;
}

std::optional<std::string_view> take_record(std::string_view& file) {
  if (file.size() < 16) return {};
  const std::string_view length = file.substr(0, 8);
  const std::uint64_t n = get_little_endian(length);
  if (get_little_endian(file.substr(8, 4)) != masked(crc32c(length)) || n > file.size() - 16)
    return {};
  const std::string_view data = file.substr(12, n);
  if (get_little_endian(file.substr(12 + n, 4)) != masked(crc32c(data))) return {};
  file.remove_prefix(16 + n);
  return data;
}

std::string version_event(double unix_seconds) {
  std::string out = event_head(unix_seconds, 0);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string start_event(double unix_seconds, std::int64_t step) {
  std::string session;  // SessionLog: status 1 (START = 1)
  put_tag(session, 1, varint);
  put_varint(session, 1);
  std::string out = event_head(unix_seconds, step);
  put_bytes(out, 7, session);
  return out;
}

std::string summary_event(double unix_seconds, std::int64_t step,
                          const std::vector<Scalar>& scalars,
                          const std::map<std::string, Bars>& histograms) {
  std::string summary;  // Summary: value 1, repeated
  for (const Scalar& scalar : scalars) put_bytes(summary, 1, scalar_value(scalar));
  for (const auto& [tag, bars] : histograms) put_bytes(summary, 1, histogram_value(tag, bars));
  std::string out = event_head(unix_seconds, step);
  put_bytes(out, 5, summary);
  return out;
}

// HParamsPluginData: session_start_info 3 (SessionStartInfo: hparams 1, a map of key 1 and value 2;
// start_time_secs 5). The tensor that every value has is a float vector of length 0.
std::string hparams_event(double unix_seconds, std::int64_t step,
                          const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string info, content, shape, tensor, value, summary;
  for (const auto& [name, text] : settings) {
    std::string entry;
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, hparam(text));
    put_bytes(info, 1, entry);
  }
  put_tag(info, 5, fixed64);
  put_double(info, unix_seconds);
  put_bytes(content, 3, info);
  put_bytes(shape, 2, "");
  put_tag(tensor, 1, varint);
  put_varint(tensor, 1);  // DT_FLOAT
  put_bytes(tensor, 2, shape);
  put_bytes(value, 1, "_hparams_/session_start_info");
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, plugin_metadata("hparams", content, ""));
  put_bytes(summary, 1, value);
  std::string out = event_head(unix_seconds, step);
  put_bytes(out, 5, summary);
  return out;
}

std::string text_event(double unix_seconds, std::int64_t step, std::string_view tag,
                       std::string_view text) {
  std::string summary;
  put_bytes(summary, 1, text_value(tag, text));
  std::string out = event_head(unix_seconds, step);
  put_bytes(out, 5, summary);
  return out;
}

std::optional<std::int64_t> event_step(std::string_view event) {
  std::int64_t step = 0;
  while (!event.empty()) {
    const auto tag = take_varint(event);
    if (!tag) return {};
    const unsigned wire = *tag & 7;
    if (wire == varint) {
      const auto value = take_varint(event);
      if (!value) return {};
      if (*tag >> 3 == 2) step = static_cast<std::int64_t>(*value);
    } else if (wire == bytes) {
      const auto size = take_varint(event);
      if (!size || !skip(event, *size)) return {};
    } else if ((wire != fixed64 && wire != fixed32) || !skip(event, wire == fixed64 ? 8 : 4)) {
      return {};
    }
  }
  return step;
}

}  // namespace tern::report::detail
