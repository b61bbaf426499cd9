/// A folder that appears under its name only when it is complete.
#pragma once
#include <filesystem>

namespace tern::data::detail {

class OutputFolder {
 public:
  /// Makes a hidden folder beside `final_path`, emptied of what an interrupted run left there.
  /// Throws UserError if `final_path` exists, unless `replace` is set and it is a folder with a
  /// meta.json, or empty: nothing else is ever removed.
  OutputFolder(std::filesystem::path final_path, bool replace);
  /// Removes the hidden folder if it was not published.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return partial_; }
  /// Gives the folder its name.
  void publish();

 private:
  std::filesystem::path final_, partial_;
  bool published_ = false;
};

}  // namespace tern::data::detail
