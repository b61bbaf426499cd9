/// Output folder that is renamed into place when complete.
#pragma once
#include <filesystem>
#include <vector>

#include "base/json.hpp"

namespace tern::prepare::detail {

class OutputFolder {
 public:
  /// Creates a hidden folder next to `final_path`, without leftovers of an interrupted run. Throws
  /// UserError
  /// - if `final_path` exists, unless `replace` is set and it is empty or has a meta.json: nothing
  ///   else is ever removed;
  /// - if it contains one of `inputs`, which replacing it would remove;
  /// - while another process makes the same folder.
  OutputFolder(std::filesystem::path final_path, bool replace,
               const std::vector<std::filesystem::path>& inputs = {});
  /// Removes the hidden folder if it was not published.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return partial_; }
  /// Writes meta.json, `meta` and the version of Tern, and renames the folder to its final path.
  void publish(nlohmann::ordered_json meta);

 private:
  void lock();

  std::filesystem::path final_, partial_;
  int lock_ = -1;  // lock on the hidden folder, released when the process ends
  bool published_ = false;
};

}  // namespace tern::prepare::detail
