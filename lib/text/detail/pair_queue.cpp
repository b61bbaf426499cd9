#include "text/detail/pair_queue.hpp"

#include <algorithm>

namespace tern::text::detail {

PairQueue::PairQueue(const std::vector<std::pair<std::string, std::int64_t>>& words) {
  for (const auto& [bytes, count] : words) {
    Word word{{}, count};
    for (const char c : bytes) word.symbols.push_back(static_cast<unsigned char>(c));
    const auto index = static_cast<std::uint32_t>(words_.size());
    for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      Occurrences& found = pairs_[{word.symbols[i], word.symbols[i + 1]}];
      found.count += count;
      if (found.words.empty() || found.words.back() != index) found.words.push_back(index);
    }
    words_.push_back(std::move(word));
  }
  for (const auto& [pair, found] : pairs_) queue_.push({found.count, pair});
}

std::pair<PairQueue::Pair, std::int64_t> PairQueue::top() {
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    const auto found = pairs_.find(best.pair);
    const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
    if (count == best.count) return {best.pair, count};
    queue_.pop();
    if (count > 0) queue_.push({count, best.pair});
  }
  return {{0, 0}, 0};
}

void PairQueue::merge(Pair pair, std::int32_t symbol) {
  const auto node = pairs_.extract(pair);
  if (node.empty()) return;
  std::vector<std::uint32_t> indices = node.mapped().words;
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::vector<Pair> grown;
  for (const std::uint32_t index : indices) merge_in(index, pair, symbol, grown);
  std::sort(grown.begin(), grown.end());
  grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
  for (const Pair& each : grown) {
    const auto found = pairs_.find(each);
    if (found != pairs_.end() && found->second.count > 0) queue_.push({found->second.count, each});
  }
}

/// Subtracts all pairs of the word, replaces, and adds all pairs again: words are short, and this
/// avoids special cases for overlapping pairs.
void PairQueue::merge_in(std::uint32_t index, Pair pair, std::int32_t symbol,
                         std::vector<Pair>& grown) {
  Word& word = words_[index];
  std::vector<std::int32_t>& s = word.symbols;
  std::vector<std::int32_t> merged;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const bool here = i + 1 < s.size() && s[i] == pair.first && s[i + 1] == pair.second;
    merged.push_back(here ? symbol : s[i]);
    if (here) ++i;
  }
  if (merged.size() == s.size()) return;
  for (std::size_t i = 0; i + 1 < s.size(); ++i) {
    const auto found = pairs_.find({s[i], s[i + 1]});
    if (found != pairs_.end()) found->second.count -= word.count;
  }
  for (std::size_t i = 0; i + 1 < merged.size(); ++i) {
    const Pair each{merged[i], merged[i + 1]};
    Occurrences& found = pairs_[each];
    found.count += word.count;
    if (each.first != symbol && each.second != symbol) continue;
    if (found.words.empty() || found.words.back() != index) found.words.push_back(index);
    grown.push_back(each);
  }
  s = std::move(merged);
}

}  // namespace tern::text::detail
