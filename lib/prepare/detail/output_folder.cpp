#include "prepare/detail/output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/version.hpp"

namespace tern::prepare::detail {
namespace fs = std::filesystem;

namespace {

/// Whether `path`, with links resolved, is `folder` or below it.
bool is_inside(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error),
                 within = fs::weakly_canonical(folder, error);
  return std::mismatch(within.begin(), within.end(), whole.begin(), whole.end()).first ==
         within.end();
}

}  // namespace

OutputFolder::OutputFolder(fs::path final_path, bool replace, const std::vector<fs::path>& inputs) {
  final_ = fs::absolute(final_path).lexically_normal();
  if (!final_.has_filename()) final_ = final_.parent_path();  // data/NAME/
  if (final_.filename().empty())
    user_error("'{}' is not a folder to write to", final_path.string());
  for (const fs::path& input : inputs)
    if (is_inside(final_, input))
      user_error("{} is in the output folder {}, which is rebuilt; give another --output",
                 input.string(), final_.string());
  if (fs::exists(final_)) {
    if (!replace)
      user_error("{} exists; give --force to rebuild it, or another --output", final_.string());
    if (!fs::is_directory(final_) || (!fs::is_empty(final_) && !fs::exists(final_ / "meta.json")))
      user_error(
          "{} was not made by ./prepare (it has no meta.json) and is not replaced; remove it "
          "yourself or give another --output",
          final_.string());
  }
  partial_ = final_.parent_path() / fmt::format(".{}.partial", final_.filename().string());
  try {
    make_own_folder(partial_);
    lock();
    for (const auto& left : fs::directory_iterator(partial_)) fs::remove_all(left.path());
  } catch (const FileError& error) {
    user_error("{}", error.what());
  } catch (const fs::filesystem_error& error) {
    user_error("{} cannot be made: {}", partial_.string(), error.code().message());
  }
}

/// Throws UserError in the second of two processes that make the same folder. No effect on file
/// systems without directory locks (some NFS).
void OutputFolder::lock() {
  lock_ = ::open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  struct stat opened = {}, named = {};
  const bool other = lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // The other process may have renamed the folder between open() and flock().
  const bool gone = lock_ < 0 || ::fstat(lock_, &opened) != 0 ||
                    ::stat(partial_.c_str(), &named) != 0 || opened.st_ino != named.st_ino;
  if (!other && !gone) return;
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
  user_error("another ./prepare is making {}; wait for it, or give another --output",
             final_.string());
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!published_) fs::remove_all(partial_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void OutputFolder::publish(nlohmann::ordered_json meta) {
  meta["made_by"] = fmt::format("tern {} ({})", version(), commit());
  write_file(partial_ / "meta.json",
             [&](std::ostream& out) { out << json_text(meta, 2, InvalidUtf8::replaced) << '\n'; });
  // A name of its own: another folder of that name is not ours to remove.
  const fs::path old =
      final_.parent_path() / fmt::format(".{}.old-{}", final_.filename().string(), unique_token());
  try {
    if (fs::exists(final_)) fs::rename(final_, old);
    std::error_code refused, ignored;
    fs::rename(partial_, final_, refused);
    if (refused) {
      fs::rename(old, final_, ignored);
      throw fs::filesystem_error("rename", partial_, final_, refused);
    }
    published_ = true;
    fs::remove_all(old, ignored);  // the next ./prepare removes it
  } catch (const fs::filesystem_error& error) {
    user_error("{} cannot be written: {}", final_.string(), error.code().message());
  }
}

}  // namespace tern::prepare::detail
