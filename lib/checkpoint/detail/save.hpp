/// One save: the copy in host memory and its distribution over writing ranks.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "checkpoint/detail/layout.hpp"

namespace tern::checkpoint::detail {

/// A rank's copy of its pieces. The buffer is reused by the next save.
struct Snapshot {
  Header header;
  std::vector<Tensor> tensors;
  std::vector<Extent> extents;
  bool complete = false;  // this is rank 0 and holds everything, tensor after tensor
  std::unique_ptr<float[]> buffer;
  std::size_t elements = 0, capacity = 0;

  /// Lays out the pieces and returns where each goes. Throws InternalError for pieces that do not
  /// fit the tensors and, with one rank, for gaps.
  std::vector<float*> take(const Header& header, const std::vector<Tensor>& tensors,
                           const std::vector<Piece>& pieces, int rank, int ranks);
};

/// Writes one rank's snapshots to disk.
class Saver {
 public:
  virtual ~Saver() = default;
  /// Returns when the checkpoint is visible. On failure rank 0 throws and the other ranks return
  /// false; no partial checkpoint is left.
  virtual bool save(const Snapshot& snapshot) = 0;
};

/// `patience`: seconds that ranks wait for each other.
std::unique_ptr<Saver> make_saver(const std::filesystem::path& directory, int rank, int ranks,
                                  double patience);

}  // namespace tern::checkpoint::detail
