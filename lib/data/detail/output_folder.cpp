#include "data/detail/output_folder.hpp"

#include <utility>

#include "base/error.hpp"

namespace tern::data::detail {
namespace fs = std::filesystem;

OutputFolder::OutputFolder(fs::path final_path, bool replace) {
  final_ = fs::absolute(final_path).lexically_normal();
  if (!final_.has_filename()) final_ = final_.parent_path();  // data/NAME/
  if (final_.filename().empty()) user_error("'{}' is no folder to write to", final_path.string());
  if (fs::exists(final_)) {
    if (!replace)
      user_error("{} exists; give --force to make it again, or another --output", final_.string());
    if (!fs::is_directory(final_) || (!fs::is_empty(final_) && !fs::exists(final_ / "meta.json")))
      user_error(
          "{} was not made by ./prepare (it has no meta.json) and is not replaced; remove it "
          "yourself or give another --output",
          final_.string());
  }
  partial_ = final_.parent_path() / fmt::format(".{}.partial", final_.filename().string());
  try {
    fs::remove_all(partial_);
    fs::create_directories(partial_);
  } catch (const fs::filesystem_error& error) {
    user_error("{} cannot be made: {}", partial_.string(), error.code().message());
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!published_) fs::remove_all(partial_, ignored);
}

void OutputFolder::publish() {
  const fs::path old = final_.parent_path() / fmt::format(".{}.old", final_.filename().string());
  try {
    fs::remove_all(old);
    if (fs::exists(final_)) fs::rename(final_, old);
    fs::rename(partial_, final_);
    published_ = true;
    fs::remove_all(old);
  } catch (const fs::filesystem_error& error) {
    user_error("{} cannot be written: {}", final_.string(), error.code().message());
  }
}

}  // namespace tern::data::detail
