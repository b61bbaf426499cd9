/// Scalars, histograms and texts for TensorBoard, without TensorFlow: TFRecord framing (length and
/// data, each with a masked CRC32C) around Event messages of the protocol buffers in
/// tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/append_file.hpp"

namespace tern::report {

class EventWriter {
 public:
  /// Opens a new events.out.tfevents.TIME.tern in `directory`; its name sorts after those that are
  /// there, which is the order TensorBoard reads them in. Events of older files with a step beyond
  /// `resume_step` are removed, and unless that step was `evaluated`, its evaluation's; a running
  /// TensorBoard is told to forget them. Throws UserError if the directory cannot be written.
  EventWriter(const std::filesystem::path& directory, std::int64_t resume_step,
              bool evaluated = true);

  /// One event with all values (stored as float); those named NAME/x, where x is a number, are one
  /// histogram NAME whose bars stand at x. False if the disk refuses it.
  bool write(double unix_seconds, std::int64_t step,
             const std::vector<std::pair<std::string, double>>& values);
  /// A text, shown as it is.
  bool write_text(double unix_seconds, std::int64_t step, std::string_view tag,
                  std::string_view text);

  /// Puts what was written on the disk; false if that fails.
  bool sync() { return file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace tern::report
