/// Reads token shards as sequences. Shards: the llm.c format (256 int32 header: magic 20240520,
/// version 1, count; then uint16 tokens; version 2: uint32 tokens, for vocabularies beyond 65,536)
/// and plain nanoGPT .bin (uint16). Memory-mapped: a shard is never read into memory as a whole.
///
/// Sample s is the s-th window of T+1 tokens (windows overlap by one token, none spans two shards).
/// The order in which windows are visited is a pseudo-random permutation of each epoch, a function
/// of (seed, epoch) alone: global sample number g of an optimizer step means the same window on any
/// rank layout.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/batch.hpp"

namespace tern::data {

/// A set of shards, opened and checked. Throws UserError for a pattern that matches nothing, and
/// for an empty, truncated or unreadable file, naming it.
class Shards {
 public:
  /// `patterns`: paths with wildcards. `vocabulary`: tokens at or above it are an error; every
  /// shard is scanned for them, in parallel, when opened.
  Shards(const std::vector<std::string>& patterns, std::size_t vocabulary, std::size_t threads);
  ~Shards();
  Shards(Shards&&) noexcept;

  std::size_t tokens() const;
  /// Number of windows of `length` + 1 tokens.
  std::size_t windows(std::size_t length) const;
  /// Copies window `w`: length + 1 tokens.
  void read(std::size_t window, std::size_t length, std::int32_t* tokens) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The window that global sample number g visits: a permutation of [0, windows) in each epoch.
std::size_t shuffled_window(std::uint64_t sample, std::size_t windows, std::uint64_t seed);

struct ReaderOptions {
  std::size_t sequences;  // B, of one micro-step of this rank
  std::size_t length;     // T
  std::uint64_t seed = 0;
  bool shuffle = true;                 // false: sample g is window g (evaluation), wrapping around
  std::size_t threads = 1, depth = 4;  // prefetch threads, batches in flight
};

/// Batches in order, made ahead by background threads. Micro-step m (counted from 0 over all steps,
/// of all ranks together) of `ranks` covers the samples [first, first + B) with first = (m * ranks
/// + rank) * B: consecutive over ranks and micro-steps, so one optimizer step's samples are the
/// same set for any split.
class Reader {
 public:
  Reader(const Shards& shards, const ReaderOptions& options, std::size_t rank, std::size_t ranks,
         std::uint64_t first_micro_step);
  ~Reader();
  /// The next micro-step's batch; rethrows what a prefetch thread met.
  Batch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::data
