/// Run directory runs/NAME: deck.in, log.txt, metrics, report and checkpoints.
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
  std::filesystem::path profile() const { return path / "profile"; }

  bool holds_a_run() const;
};

/// Renames `path`, if it exists, to the first free of PATH.1, PATH.2, ...: nothing is overwritten.
/// Throws filesystem_error.
void move_aside(const std::filesystem::path& path);

/// Prepares the directory for training and locks it; rank 0 only. An earlier run there is an error
/// unless it is resumed or, with options.fresh, moved aside to NAME.1, NAME.2, ...: nothing is
/// overwritten. Writes deck.in, except of a run that is resumed: that may still be refused. Throws
/// UserError, also if another process uses the directory.
RunLock open_run_directory(const RunDirectory& run, const deck::Deck& deck, const Options& options);

/// Writes deck.in; rank 0 only. Throws UserError.
void write_deck(const RunDirectory& run, const deck::Deck& deck);

/// Warning text if the checkpoints that a run holds at a time, of `checkpoint` bytes each, do not
/// fit on disk: `available` bytes are free and `there` checkpoints exist already. Else empty.
std::string shortage_of_space(std::uintmax_t available, std::uintmax_t checkpoint,
                              const deck::Checkpoint& rules, std::int64_t there);

}  // namespace tern::job
