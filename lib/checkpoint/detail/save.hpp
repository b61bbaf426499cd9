/// One save: the copy in host memory, and who writes what of it.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "checkpoint/detail/layout.hpp"

namespace tern::checkpoint::detail {

/// A rank's copy of its pieces. The buffer is kept for the next save.
struct Snapshot {
  Header header;
  std::vector<Tensor> tensors;
  std::vector<Extent> extents;
  bool complete = false;  // this rank holds everything, tensor after tensor
  std::unique_ptr<float[]> buffer;
  std::size_t elements = 0, capacity = 0;

  /// Throws InternalError for pieces that do not fit the tensors, and with one rank for gaps.
  void take(const Header& header, const std::vector<Tensor>& tensors,
            const std::vector<Piece>& pieces, int rank, int ranks);
};

/// Puts snapshots on disk, for one rank of a run.
class Saver {
 public:
  virtual ~Saver() = default;
  /// Returns when the checkpoint is visible. Rank 0 throws if it failed; the other ranks, which
  /// rank 0 speaks for, return false. Nothing half-written is left.
  virtual bool save(const Snapshot& snapshot) = 0;
};

/// `patience`: seconds that ranks wait for each other.
std::unique_ptr<Saver> make_saver(const std::filesystem::path& directory, int rank, int ranks,
                                  double patience);

}  // namespace tern::checkpoint::detail
