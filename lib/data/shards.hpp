/// Token shards, memory-mapped, in two formats:
///
///   llm.c         header of 256 int32 (magic 20240520, version, count), then tokens: uint16 in
///                 version 1, uint32 in version 2, for vocabularies beyond 65,536
///   nanoGPT .bin  uint16 tokens, no header
///
/// Read in windows of T+1 tokens, which overlap by one token; none spans two shards.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tern::data {

/// A set of shards, opened and checked. Throws UserError for a pattern without matches and, naming
/// the file, for empty, truncated or unreadable files.
class Shards {
 public:
  /// `patterns`: paths with wildcards. Tokens not below `vocabulary` are an error; all shards are
  /// scanned for them, with `threads` threads.
  Shards(const std::vector<std::string>& patterns, std::size_t vocabulary, std::size_t threads);
  ~Shards();
  Shards(Shards&&) noexcept;

  std::size_t tokens() const;
  std::size_t largest_token() const;
  /// Number of windows of `length` + 1 tokens.
  std::size_t windows(std::size_t length) const;
  /// Copies the length + 1 tokens of a window.
  void read(std::size_t window, std::size_t length, std::int32_t* tokens) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::data
