/// Scalars for TensorBoard, without TensorFlow: TFRecord framing (length and data, each with a
/// masked CRC32C) around Event messages of the protocol buffers in tensorflow/core/util/event.proto
/// and tensorflow/core/framework/summary.proto, of which only scalars (`simple_value`) are needed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::campaign {

class EventWriter {
 public:
  /// Opens a new events.out.tfevents.TIME.tern in `directory`; its name sorts after those that are
  /// there, which is the order TensorBoard reads them in. Events of older files with a step beyond
  /// `resume_step` are removed, and a running TensorBoard is told to forget them. Throws UserError
  /// if the directory cannot be written.
  EventWriter(const std::filesystem::path& directory, std::int64_t resume_step);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// One event with all values (stored as float); flushed. A full disk loses the event, not the
  /// run.
  void write(double unix_seconds, std::int64_t step,
             const std::vector<std::pair<std::string, double>>& values);

 private:
  void record(std::string_view event);
  std::FILE* file_ = nullptr;
};

}  // namespace tern::campaign
