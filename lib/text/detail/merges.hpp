/// Byte-pair merging: table of ranked pairs, and its application.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tern::text::detail {

struct Merge {
  std::int32_t left, right, result;
};

/// Open-addressed table from a pair of symbols to its rank and result.
class Merges {
 public:
  /// `merges` by rank; the first of equal pairs applies.
  explicit Merges(const std::vector<Merge>& merges);

  /// Repeatedly merges the leftmost pair of lowest rank until no pair is left, in place. Returns
  /// the number of symbols. O(n^2) for short runs, O(n log n) for longer ones.
  std::size_t apply(std::int32_t* symbols, std::size_t count) const;
  std::size_t apply_by_scan(std::int32_t* symbols, std::size_t count) const;
  std::size_t apply_by_heap(std::int32_t* symbols, std::size_t count) const;

 private:
  static constexpr std::uint32_t no_rank = 0xffffffff;
  struct Entry {
    std::uint64_t pair;
    std::uint32_t rank;
    std::int32_t result;
  };
  /// Entry of the pair, or one with rank `no_rank`.
  const Entry& find(std::int32_t left, std::int32_t right) const;
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t place(std::uint64_t pair) const { return pair * 0x9e3779b97f4a7c15u >> shift_; }

  std::vector<Entry> table_;
  unsigned shift_;
};

}  // namespace tern::text::detail
