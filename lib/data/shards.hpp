/// Token shards: the llm.c format (256 int32 header: magic 20240520, version 1, count; then uint16
/// tokens; version 2: uint32 tokens, for vocabularies beyond 65,536) and plain nanoGPT .bin
/// (uint16). Memory-mapped: a shard is never read into memory as a whole.
///
/// Window s is the s-th window of T+1 tokens (windows overlap by one token, none spans two shards).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  std::size_t largest_token() const;
  /// Number of windows of `length` + 1 tokens.
  std::size_t windows(std::size_t length) const;
  /// Copies window `w`: length + 1 tokens.
  void read(std::size_t window, std::size_t length, std::int32_t* tokens) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::data
