/// Scalars, histograms, texts and settings for TensorBoard, without TensorFlow: Event messages of
/// tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto in TFRecord framing
/// (length and data, each with a masked CRC32C).
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/detail/kept_file.hpp"

namespace tern::report {

class EventWriter {
 public:
  /// Opens a new events.out.tfevents.TIME.tern in `directory`; its name sorts after the existing
  /// ones, the order in which TensorBoard reads them. Events of older files beyond `resume_step`
  /// are removed, and unless `evaluated`, those of that step's evaluation; a running TensorBoard is
  /// told to drop them. Throws UserError if the directory cannot be written.
  EventWriter(const std::filesystem::path& directory, std::int64_t resume_step,
              bool evaluated = true);

  /// One event with all values (stored as float), each described by its title; those named NAME/x with
  /// a number x form one histogram NAME with bars at x. TensorBoard sorts groups, the parts of tags
  /// before the first slash, capitals first: losses go to Loss/NAME, scores to Score/NAME. False if it is not in the file yet: it is kept (kept_file.hpp).
  bool write(double unix_seconds, std::int64_t step,
             const std::vector<std::pair<std::string, double>>& values);
  /// A text, shown verbatim.
  bool write_text(double unix_seconds, std::int64_t step, std::string_view tag,
                  std::string_view text);

  /// The run's settings, for TensorBoard's hparams: names, and values in namelist syntax.
  bool write_settings(double unix_seconds, std::int64_t step,
                      const std::vector<std::pair<std::string, std::string>>& settings);

  /// Flushes to disk (fsync); false if that fails, or if an event is not in the file yet.
  bool sync() { return file_.sync(); }

 private:
  detail::KeptFile file_;
  std::set<std::string> described_;  // tags
};

}  // namespace tern::report
