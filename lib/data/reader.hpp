/// Reads rows of a source as batches, ahead of their use.
///
/// The order in which rows are visited is a pseudo-random permutation of each epoch, a function of
/// (seed, epoch) alone: global row number g of an optimizer step means the same row on any rank
/// layout.
#pragma once
#include <memory>

#include "data/source.hpp"

namespace tern::data {

/// The row that global row number g visits: a permutation of [0, rows) in each epoch.
std::size_t shuffled_row(std::uint64_t number, std::size_t rows, std::uint64_t seed);

struct ReaderOptions {
  std::size_t sequences;  // B, of one micro-step of this rank
  std::size_t length;     // T, positions of a row
  std::uint64_t seed = 0;
  bool shuffle = true;                 // false: row number g is row g (evaluation), wrapping around
  std::size_t threads = 1, depth = 4;  // prefetch threads, batches in flight
  std::size_t accumulation = 1;        // micro-steps of an optimizer step
  std::uint64_t limit = 0;             // rows numbered from here on are left empty; 0: none
};

/// Batches in order, made ahead by background threads. Micro-step m (counted from 0 over all steps,
/// of all ranks together) of `ranks` covers the rows [first, first + B) with first = (m * ranks +
/// rank) * B: consecutive over ranks and micro-steps, so one optimizer step's rows are the same set
/// for any split.
class Reader {
 public:
  /// UserError if the source has no rows.
  Reader(const Source& source, const ReaderOptions& options, std::size_t rank, std::size_t ranks,
         std::uint64_t first_micro_step);
  ~Reader();
  /// The next micro-step's batch; rethrows what a prefetch thread met.
  Batch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::data
