/// XXH64, Y. Collet's 64-bit hash of a byte stream (specification: xxHash repository,
/// doc/xxhash_spec.md). Runs near memory bandwidth; `xxhsum -H64` prints the same values.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tern::checkpoint::detail {

class Xxh64 {
 public:
  explicit Xxh64(std::uint64_t seed = 0);
  void add(const void* data, std::size_t bytes);
  /// Hash of all bytes added so far; more may be added afterwards.
  std::uint64_t value() const;

 private:
  void stripe(const unsigned char* data);  // 32 bytes

  std::uint64_t lane_[4];
  std::uint64_t seed_, total_ = 0;
  unsigned char pending_[32];
  std::size_t pending_bytes_ = 0;
};

}  // namespace tern::checkpoint::detail
