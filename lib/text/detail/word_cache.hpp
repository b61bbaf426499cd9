/// Per-thread cache of the tokens of words: fixed size, one entry per cache line.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tern::text::detail {

/// Direct-mapped: a word evicts another with the same hash. Words or token lists too long for an
/// entry are not cached.
class WordCache {
 public:
  /// Clears the cache if it held another owner's words.
  void belong_to(std::uint64_t owner) {
    if (owner == owner_) return;
    owner_ = owner;
    entries_.assign(entry_count, {});
  }

  /// Appends the tokens of `word` if cached.
  bool append(std::string_view word, std::vector<std::int32_t>& tokens) const {
    if (word.size() > max_bytes) return false;
    const Entry& entry = entries_[place(word)];
    if (entry.bytes != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0)
      return false;
    tokens.insert(tokens.end(), entry.tokens, entry.tokens + entry.count);
    return true;
  }

  void store(std::string_view word, const std::vector<std::int32_t>& tokens) {
    if (word.size() > max_bytes || tokens.size() > max_tokens) return;
    Entry& entry = entries_[place(word)];
    entry.bytes = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(tokens.size());
    std::memcpy(entry.word, word.data(), word.size());
    std::memcpy(entry.tokens, tokens.data(), tokens.size() * sizeof(std::int32_t));
  }

 private:
  static constexpr std::size_t entry_count = std::size_t{1} << 15;  // 2 MiB
  static constexpr std::size_t max_bytes = 30, max_tokens = 8;
  struct alignas(64) Entry {
    std::uint8_t bytes = 0, count = 0;
    char word[max_bytes] = {};
    std::int32_t tokens[max_tokens] = {};
  };
  static_assert(sizeof(Entry) == 64);

  /// FNV-like hash, eight bytes at a time.
  static std::size_t place(std::string_view word) {
    std::uint64_t hash = word.size() * 0x9e3779b97f4a7c15u;
    while (!word.empty()) {
      std::uint64_t part = 0;
      const std::size_t size = word.size() < sizeof part ? word.size() : sizeof part;
      std::memcpy(&part, word.data(), size);
      hash = (hash ^ part) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
      word.remove_prefix(size);
    }
    return hash & (entry_count - 1);
  }

  std::uint64_t owner_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace tern::text::detail
