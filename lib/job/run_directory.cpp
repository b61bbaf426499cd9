#include "job/run_directory.hpp"

#include "base/error.hpp"
#include "base/files.hpp"

namespace tern::job {

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

namespace {

/// UserError if `run.path` holds anything but a run, which must not be moved.
void require_run(const RunDirectory& run) {
  if (!fs::exists(run.path) || (fs::is_directory(run.path) && fs::is_empty(run.path))) return;
  if (fs::exists(run.deck()) || fs::exists(run.checkpoints())) return;
  user_error(
      "{} is not the directory of a run (it has no deck.in) and is not moved aside; set another "
      "&output directory",
      run.path.string());
}

}  // namespace

void write_deck(const RunDirectory& run, const deck::Deck& deck) {
  if (!replace_file(run.deck(), deck::print(deck, false)))
    user_error("cannot write {}: check &output directory and its disk", run.deck().string());
}

RunLock open_run_directory(const RunDirectory& run, const deck::Deck& deck,
                           const Options& options) {
  try {
    if (options.fresh) require_run(run);
    if (options.fresh && fs::exists(run.path)) {
      const RunLock nobody_there(run.path);
      move_aside(run.path);
    }
    fs::create_directories(run.path);
    make_own_folder(run.checkpoints());
    if (fs::is_symlink(run.profile())) make_own_folder(run.profile());  // refused now, not later
    RunLock lock(run.path);
    remove_leftovers(run.path);
    if (run.holds_a_run() && !options.resume)
      user_error(
          "{} holds an earlier run: resume it with --resume, move it aside with --fresh, or set "
          "another &output directory",
          run.path.string());
    if (!run.holds_a_run()) write_deck(run, deck);
    return lock;
  } catch (const FileError& e) {
    user_error("{}; check &output directory", e.what());
  } catch (const fs::filesystem_error& e) {
    user_error("cannot use {}: {}; check &output directory", run.path.string(), e.code().message());
  }
}

std::string shortage_of_space(std::uintmax_t available, std::uintmax_t checkpoint,
                              const deck::Checkpoint& rules, std::int64_t there) {
  if (checkpoint == 0) return "";
  const auto fit = static_cast<std::int64_t>(available / checkpoint);
  // One more than kept: the oldest is removed once the newest is complete.
  const std::int64_t held = rules.keep + (rules.keep_best ? 1 : 0) + 1;
  if (fit > 0 && fit + there >= held) return "";
  constexpr double gib = 1 << 30;
  return fmt::format(
      "{:.3g} GiB are free, room for {} more checkpoints of {:.3g} GiB, and the run holds up to {} "
      "at a time: free space, or lower &checkpoint keep",
      static_cast<double>(available) / gib, fit, static_cast<double>(checkpoint) / gib, held);
}

}  // namespace tern::job
