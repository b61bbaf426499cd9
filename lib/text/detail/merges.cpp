#include "text/detail/merges.hpp"

#include <array>
#include <queue>

#include "base/error.hpp"

namespace tern::text::detail {
namespace {

constexpr std::size_t scan_limit = 64;  // longest run for which scanning beats a heap

}  // namespace

Merges::Merges(const std::vector<Merge>& merges) {
  unsigned bits = 4;
  while (std::size_t{1} << bits < 2 * merges.size()) ++bits;
  shift_ = 64 - bits;
  table_.assign(std::size_t{1} << bits, {0, no_rank, 0});
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const std::uint64_t pair = key(merge.left, merge.right);
    std::size_t i = place(pair);
    while (table_[i].rank != no_rank && table_[i].pair != pair) i = (i + 1) & (table_.size() - 1);
    if (table_[i].rank == no_rank)
      table_[i] = {pair, static_cast<std::uint32_t>(rank), merge.result};
  }
}

const Merges::Entry& Merges::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = key(left, right);
  std::size_t i = place(pair);
  while (table_[i].rank != no_rank && table_[i].pair != pair) i = (i + 1) & (table_.size() - 1);
  return table_[i];
}

std::size_t Merges::apply(std::int32_t* symbols, std::size_t count) const {
  return count <= scan_limit ? apply_by_scan(symbols, count) : apply_by_heap(symbols, count);
}

std::size_t Merges::apply_by_scan(std::int32_t* symbols, std::size_t count) const {
  std::array<const Entry*, scan_limit> pairs;  // pairs[i]: symbols i and i + 1
  TERN_REQUIRE(count <= scan_limit);
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = &find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (pairs[i]->rank < pairs[best]->rank) best = i;
    if (pairs[best]->rank == no_rank) break;
    symbols[best] = pairs[best]->result;
    for (std::size_t i = best + 1; i + 1 < count; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = best + 1; i + 2 < count; ++i) pairs[i] = pairs[i + 1];
    --count;
    if (best > 0) pairs[best - 1] = &find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = &find(symbols[best], symbols[best + 1]);
  }
  return count;
}

std::size_t Merges::apply_by_heap(std::int32_t* symbols, std::size_t count) const {
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    std::int32_t first, second;  // symbols when queued; stale if changed since
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  constexpr std::int32_t gone = -1;
  std::vector<std::size_t> next(count), previous(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](std::size_t left) {
    if (left >= count || next[left] >= count) return;
    const std::int32_t first = symbols[left], second = symbols[next[left]];
    const Entry& entry = find(first, second);
    if (entry.rank != no_rank) queue.push({entry.rank, left, first, second});
  };
  for (std::size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // for i = 0: wraps to a value beyond count
  }
  for (std::size_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::size_t left = best.left, right = next[left];
    if (right >= count || symbols[left] != best.first || symbols[right] != best.second) continue;
    symbols[left] = find(best.first, best.second).result;
    symbols[right] = gone;
    next[left] = next[right];
    if (next[left] < count) previous[next[left]] = left;
    consider(previous[left]);
    consider(left);
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (symbols[i] != gone) symbols[left++] = symbols[i];
  return left;
}

}  // namespace tern::text::detail
