/// Words of a corpus as sequences of symbols, with counts of adjacent pairs.
#pragma once
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tern::text::detail {

class PairQueue {
 public:
  using Pair = std::pair<std::int32_t, std::int32_t>;

  /// `words`: bytes and their count; each byte is a symbol.
  explicit PairQueue(const std::vector<std::pair<std::string, std::int64_t>>& words);

  /// The most frequent pair (ties: the smallest) and its count, which is 0 if no pair is left.
  std::pair<Pair, std::int64_t> top();

  /// Replaces every occurrence of `pair`, from left to right, with `symbol`.
  void merge(Pair pair, std::int32_t symbol);

 private:
  struct Word {
    std::vector<std::int32_t> symbols;
    std::int64_t count;
  };
  struct Occurrences {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // may contain the pair; duplicates are harmless
  };
  struct Candidate {
    std::int64_t count;  // when queued; requeued if it has changed
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  struct Hash {
    std::size_t operator()(const Pair& pair) const {
      const auto both = static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.first)) << 32 |
                        static_cast<std::uint32_t>(pair.second);
      return both * 0x9e3779b97f4a7c15u >> 16;
    }
  };

  void merge_in(std::uint32_t index, Pair pair, std::int32_t symbol, std::vector<Pair>& grown);

  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences, Hash> pairs_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace tern::text::detail
