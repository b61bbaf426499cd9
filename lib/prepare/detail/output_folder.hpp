/// A folder that appears under its name only when it is complete.
#pragma once
#include <filesystem>
#include <vector>

namespace tern::prepare::detail {

class OutputFolder {
 public:
  /// Makes a hidden folder beside `final_path`, emptied of what an interrupted run left there.
  /// Throws UserError if `final_path` exists, unless `replace` is set and it is a folder with a
  /// meta.json, or empty: nothing else is ever removed. So it does if one of `inputs` stands in it,
  /// which replacing it would remove, and while another process makes the same folder.
  OutputFolder(std::filesystem::path final_path, bool replace,
               const std::vector<std::filesystem::path>& inputs = {});
  /// Removes the hidden folder if it was not published.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return partial_; }
  /// Gives the folder its name.
  void publish();

 private:
  void lock();

  std::filesystem::path final_, partial_;
  int lock_ = -1;  // the hidden folder, opened and locked: the lock goes with the process
  bool published_ = false;
};

}  // namespace tern::prepare::detail
