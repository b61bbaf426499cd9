/// Writes token shards (format: shards.hpp).
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace tern::data {

/// Appends tokens to folder/NAME_00000.bin, folder/NAME_00001.bin, ... of at most `shard_tokens`
/// tokens each; uint16 if the vocabulary allows it, else uint32. Files have temporary names
/// (.NAME_00000.bin.partial) until finish() renames them into place, once all are on disk; the
/// destructor removes unfinished shards. I/O errors throw UserError.
class ShardWriter {
 public:
  ShardWriter(std::filesystem::path folder, std::string name, std::size_t vocabulary,
              std::size_t shard_tokens);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  void append(const std::int32_t* tokens, std::size_t count);
  void append(const std::vector<std::int32_t>& tokens) { append(tokens.data(), tokens.size()); }
  /// Syncs and renames all shards; nothing may be appended afterwards.
  void finish();

  /// Tokens appended so far, in all shards.
  std::size_t tokens() const { return total_; }
  std::size_t shards() const { return shards_; }

 private:
  std::filesystem::path path(std::size_t shard, bool partial) const;
  void open();
  void close();
  void write(const void* bytes, std::size_t size);

  std::filesystem::path folder_;
  std::string name_;
  std::size_t vocabulary_, shard_tokens_;
  std::FILE* file_ = nullptr;
  std::size_t shards_ = 0, in_shard_ = 0, total_ = 0;
  bool finished_ = false;
};

}  // namespace tern::data
