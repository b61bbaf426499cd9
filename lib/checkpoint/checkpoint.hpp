/// HDF5 checkpoints. A run's checkpoints live in DIR/step_00001000/checkpoint.h5, with shard_*.h5
/// beside it when states are sharded over ranks (checkpoint.h5 then holds virtual datasets over
/// them). Float32, row-major, chunked, Fletcher32. Written under a temporary name, fsynced, and
/// made visible by one rename. evaluation.json beside it, once the checkpoint has been evaluated:
/// the attributes that the evaluation changed, which a Reader puts in place of the file's own.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace tern::checkpoint {

struct Tensor {
  /// "/model/layers/0/self_attn/q_proj/weight" or, of the optimizer, the state's name before it:
  /// "/optimizer/exp_avg/model/layers/0/self_attn/q_proj/weight" (docs/checkpoint.md).
  std::string path;
  std::vector<std::size_t> shape;  // as a reader should see it
};

/// A flat range [first, first + count) of a tensor, held by this rank.
struct Piece {
  std::size_t tensor;  // index into the list of tensors
  std::size_t first, count;
  const float* data;
};

/// Root attributes of the file.
struct Header {
  std::int64_t step = 0, tokens = 0;
  std::string deck;                          // resolved deck text
  std::map<std::string, double> numbers;     // e.g. best validation loss, skipped steps
  std::map<std::string, std::string> texts;  // e.g. commit
};

/// Writes checkpoints of one run, one at a time, in a background thread of each rank.
class Store {
 public:
  /// `keep`: how many of the newest stay; the one marked best stays too. Ranks share `directory`.
  /// Rank 0 removes what earlier crashes left there. `patience`: seconds that ranks wait for each
  /// other's shards.
  Store(std::filesystem::path directory, int rank, int ranks, int keep, Log& log,
        double patience = 600);
  ~Store();  // waits for the write in progress

  /// Copies the pieces (waits first if the previous write is still going on) and returns; the write
  /// goes on in the background. Local to each rank, called by all with the same header and tensors.
  /// With one rank, or when rank 0 holds everything, the file is plain; pieces of several ranks
  /// make shards.
  void save(const Header& header, const std::vector<Tensor>& tensors,
            const std::vector<Piece>& pieces);
  /// The checkpoint of `step` has been evaluated: `numbers` go to its evaluation.json as soon as
  /// it is visible; where `best`, best.txt names it before that, and retention keeps it. Nothing is
  /// written if the checkpoint itself could not be. Local to rank 0, and of no effect elsewhere.
  void evaluated(std::int64_t step, const std::map<std::string, double>& numbers, bool best);
  /// Waits until everything is on disk. Returns false if the last write failed (disk full, say):
  /// the error was logged, and nothing half-written is left.
  bool wait();
  /// Seconds that the last finished write took, without the copy; 0 before the first one. Local.
  double seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A checkpoint on disk, opened and verified (every chunk's checksum is read once).
class Reader {
 public:
  /// `path`: a checkpoint.h5, or its step_ folder. Throws UserError naming the file and what is
  /// wrong.
  explicit Reader(const std::filesystem::path& path);
  ~Reader();
  Reader(Reader&&) noexcept;

  const Header& header() const;
  const std::vector<Tensor>& tensors() const;
  bool has(const std::string& path) const;
  /// Reads the flat range [first, first + count) of a dataset.
  void read(const std::string& path, std::size_t first, std::size_t count, float* to) const;
  const std::filesystem::path& path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The checkpoint below `directory` that is marked best; nothing if none is, or if it is gone.
std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& directory);

/// The newest usable checkpoint below `directory` (a run's checkpoints folder). A damaged one is
/// reported in the log and the one before it is tried. Leftovers of interrupted writes are ignored.
/// Empty only if there is none, usable or not: throws UserError if there are some and none can be
/// read, or if the folder itself cannot be.
std::optional<Reader> open_newest(const std::filesystem::path& directory, Log& log);

/// How many visible checkpoints, whole or damaged, are below `directory`.
std::int64_t count(const std::filesystem::path& directory);

}  // namespace tern::checkpoint
