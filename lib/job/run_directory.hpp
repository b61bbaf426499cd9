/// The directory of a run: runs/NAME with deck.in, log.txt, metrics, report and checkpoints.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "deck/deck.hpp"
#include "job/options.hpp"
#include "job/run_lock.hpp"

namespace tern::job {

struct RunDirectory {
  std::filesystem::path path;

  std::filesystem::path checkpoints() const { return path / "checkpoints"; }
  std::filesystem::path deck() const { return path / "deck.in"; }
  std::filesystem::path log() const { return path / "log.txt"; }
  std::filesystem::path samples() const { return path / "samples.txt"; }

  bool holds_a_run() const;
};

/// Renames what is at `path`, if anything, to PATH.1, or PATH.2, ...: nothing is overwritten.
/// Throws filesystem_error.
void move_aside(const std::filesystem::path& path);

/// Makes the directory ready for training, on rank 0, and locks it. An earlier run there is an
/// error unless it is resumed or, with options.fresh, moved aside to NAME.1, NAME.2, ...: nothing
/// is overwritten. Throws UserError, also if another process works there.
RunLock open_run_directory(const RunDirectory& run, const deck::Deck& deck, const Options& options);

/// Of checkpoints of so many bytes, whether all fit that a run holds at a time, where `available`
/// bytes are free and `there` of them are written: a text for people, empty if they do.
std::string shortage_of_space(std::uintmax_t available, std::uintmax_t checkpoint,
                              const deck::Checkpoint& rules, std::int64_t there);

}  // namespace tern::job
