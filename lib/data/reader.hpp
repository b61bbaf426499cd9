/// Reads rows of a source as batches, with prefetching.
///
/// Rows are visited in a pseudo-random permutation per epoch, a function of (seed, epoch) only:
/// global row number g is the same row with any layout of ranks.
#pragma once
#include <memory>
#include <optional>

#include "data/source.hpp"
#include "data/step_rows.hpp"

namespace tern::data {

/// The row of the source at global row number `number`: a permutation of [0, rows) in each epoch.
std::size_t shuffled_row(std::uint64_t number, std::size_t rows, std::uint64_t seed);

struct ReaderOptions {
  std::size_t sequences;  // B, rows of one micro-batch of this rank
  std::size_t length;     // T, positions per row
  std::uint64_t seed = 0;
  bool shuffle = true;                 // false: row number g is row g mod rows (evaluation)
  std::size_t threads = 1, depth = 4;  // prefetch threads, batches in flight
  std::size_t accumulation = 1;        // micro-batches per optimizer step and rank
  std::uint64_t limit = 0;             // global rows from this number on are left empty; 0: none
  std::optional<StepRows> steps = {};  // rows of a step; none: ranks x accumulation x B
};

/// Batches in order, prefetched by background threads. Accumulation step m (counted from 0 over all
/// optimizer steps) covers rows [first, first + B) with first = (m * ranks + rank) * B: consecutive
/// over ranks and accumulation steps, so that the rows of an optimizer step are the same set for
/// any split. A step with fewer rows (`steps`) leaves the last ones of its batches empty, and ends
/// with its last micro-batch that has a row on any rank.
class Reader {
 public:
  /// Throws UserError if the source has no rows. `first_micro_batch`: a multiple of accumulation if
  /// `steps` is given.
  Reader(const Source& source, const ReaderOptions& options, std::size_t rank, std::size_t ranks,
         std::uint64_t first_micro_batch);
  ~Reader();
  /// The next micro-batch. Blocks until it is ready; rethrows exceptions of prefetch threads.
  Batch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::data
