/// HDF5 checkpoints in DIR/step_00001000/:
///
///   checkpoint.h5     float32, row-major, chunked, Fletcher32
///   shard_*.h5        if states are sharded over ranks: checkpoint.h5 then holds virtual datasets
///   checkpoint.sum    size and XXH64 of each of these files
///   evaluation.json   once evaluated: attributes that override those of checkpoint.h5
///
/// Written under a temporary name, fsynced, and renamed into place.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace tern::checkpoint {

struct Tensor {
  /// "/model/layers/0/self_attn/q_proj/weight"; optimizer states have their name as prefix:
  /// "/optimizer/exp_avg/model/layers/0/self_attn/q_proj/weight" (docs/checkpoint.md).
  std::string path;
  std::vector<std::size_t> shape;  // of the whole tensor
};

/// A flat range [first, first + count) of a tensor, held by this rank.
struct Piece {
  std::size_t tensor;  // index into the list of tensors
  std::size_t first, count;
};

/// Copies the values of each piece i to `to[i]` and returns when they are there.
using CopyPieces = std::function<void(const std::vector<float*>& to)>;

/// Root attributes of the file. The number "best_step", if any, is the step of the best checkpoint.
struct Header {
  std::int64_t step = 0, tokens = 0;
  std::string deck;                          // resolved deck text
  std::map<std::string, double> numbers;     // e.g. best validation loss, skipped steps
  std::map<std::string, std::string> texts;  // e.g. commit
};

/// Writes a run's checkpoints, one at a time, in a background thread on each rank.
class Store {
 public:
  /// `keep`: number of newest checkpoints kept, in addition to the one that best.txt names and, if
  /// `keep_best`, to the best by the attributes. All ranks use the same `directory`; rank 0 removes
  /// leftovers of crashes. `patience`: seconds that ranks wait for each other's shards. Throws
  /// UserError if the directory cannot be used.
  Store(std::filesystem::path directory, int rank, int ranks, int keep, Log& log,
        double patience = 600, bool keep_best = true);
  ~Store();  // waits for the write in progress

  /// Waits for the previous write, has the pieces copied to its buffer and returns; the write
  /// continues in the background. Not collective, but called by all ranks with the same header and
  /// tensors. The file is plain if rank 0 holds everything; otherwise each rank writes a shard.
  void save(const Header& header, const std::vector<Tensor>& tensors,
            const std::vector<Piece>& pieces, const CopyPieces& copy);
  /// Waits, then starts to write the copy of the last save() again. Called by all ranks.
  void retry();
  /// Writes `numbers` to the evaluation.json of the checkpoint of `step` as soon as that is
  /// visible; if `best`, best.txt is written first and retention keeps the checkpoint. What the
  /// disk refuses is written after the next save, or by record(). Writes nothing for a checkpoint
  /// that failed. Local; no effect on ranks other than 0.
  void evaluated(std::int64_t step, const std::map<std::string, double>& numbers, bool best);
  /// When a run resumes: warns if best.txt does not name `best`, the step of the best checkpoint by
  /// the attributes, and rewrites it. It may be ahead of them and name `unevaluated`, a step whose
  /// evaluation was interrupted. Local; no effect on ranks other than 0.
  void check_best(std::int64_t best, std::int64_t unevaluated);
  /// Waits until everything is on disk. False if the last write failed (e.g. disk full): the error
  /// is logged and no partial checkpoint is left.
  bool wait();
  /// Waits, and writes what of evaluations and best.txt the disk has refused. False if it still
  /// does. Local; true on ranks other than 0.
  bool record();
  /// Duration of the last finished write without the copy; 0 before the first one. Local.
  double seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A checkpoint on disk, opened and verified by the XXH64 of each file. In a file without its
/// checkpoint.sum HDF5 compares the Fletcher32 of what is read. Files may be a stranger's: no other
/// file is reached through them.
class Reader {
 public:
  /// `path`: a checkpoint.h5 or its step_ folder. Throws UserError naming the file and the fault.
  explicit Reader(const std::filesystem::path& path);
  ~Reader();
  Reader(Reader&&) noexcept;

  const Header& header() const;
  const std::vector<Tensor>& tensors() const;
  bool has(const std::string& path) const;
  /// Throws UserError if `path`, or a group above it, is a link or external storage: such are not
  /// among the tensors.
  void require_own(const std::string& path) const;
  /// Reads the flat range [first, first + count) of a dataset.
  void read(const std::string& path, std::size_t first, std::size_t count, float* to) const;
  const std::filesystem::path& path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct BestCheckpoint {
  std::optional<std::filesystem::path> path;
  std::string trouble;  // why best.txt does not decide, for a warning; else empty
};

/// The best checkpoint below `directory`: the one that best.txt names, unless the attributes of the
/// newest readable checkpoint show that it is damaged or out of date, or it is missing. They then
/// decide. No path if there is no best checkpoint.
BestCheckpoint best_checkpoint(const std::filesystem::path& directory);

/// The newest readable checkpoint below `directory` (a run's checkpoints folder). Logs damaged ones
/// and tries the one before; ignores leftovers of interrupted writes. Empty if there are no
/// checkpoints; throws UserError if none of them, or the folder itself, can be read.
std::optional<Reader> open_newest(const std::filesystem::path& directory, Log& log);

/// Number of checkpoints below `directory`, intact or damaged.
std::int64_t count(const std::filesystem::path& directory);

}  // namespace tern::checkpoint
