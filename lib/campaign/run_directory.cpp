#include "campaign/run_directory.hpp"

#include <fstream>

#include "base/error.hpp"

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

RunDirectory open_run_directory(const deck::Deck& deck, const Options& options) {
  const RunDirectory run{deck.output.directory};
  try {
    if (options.fresh) move_aside(run.path);
    if (run.holds_a_run() && !options.resume)
      user_error(
          "{} holds an earlier run: go on with it by --resume, move it aside by --fresh, or set "
          "another &output directory",
          run.path.string());
    fs::create_directories(run.checkpoints());
    std::ofstream(run.deck()) << deck::print(deck, false);
  } catch (const fs::filesystem_error& e) {
    user_error("cannot use {}: {}; check &output directory", run.path.string(), e.code().message());
  }
  return run;
}

}  // namespace tern::campaign
