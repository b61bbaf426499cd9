#include "campaign/run_directory.hpp"

#include "base/error.hpp"
#include "campaign/detail/append_file.hpp"

namespace tern::campaign {

namespace fs = std::filesystem;

bool RunDirectory::holds_a_run() const {
  return fs::exists(checkpoints()) && !fs::is_empty(checkpoints());
}

void move_aside(const fs::path& path) {
  if (!fs::exists(path)) return;
  int number = 1;
  while (fs::exists(fmt::format("{}.{}", path.string(), number))) ++number;
  fs::rename(path, fmt::format("{}.{}", path.string(), number));
}

RunLock open_run_directory(const RunDirectory& run, const deck::Deck& deck,
                           const Options& options) {
  try {
    if (options.fresh && fs::exists(run.path)) {
      const RunLock nobody_there(run.path);
      move_aside(run.path);
    }
    fs::create_directories(run.checkpoints());
    RunLock lock(run.path);
    if (run.holds_a_run() && !options.resume)
      user_error(
          "{} holds an earlier run: resume it with --resume, move it aside with --fresh, or set "
          "another &output directory",
          run.path.string());
    if (!detail::replace_file(run.deck(), deck::print(deck, false)))
      user_error("cannot write {}: check &output directory and its disk", run.deck().string());
    return lock;
  } catch (const fs::filesystem_error& e) {
    user_error("cannot use {}: {}; check &output directory", run.path.string(), e.code().message());
  }
}

}  // namespace tern::campaign
