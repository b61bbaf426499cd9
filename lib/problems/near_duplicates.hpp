/// Texts that say nearly the same as one of a set.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tern::problems {

/// Two texts are near duplicates if more than half of their phrases of four words, whatever the
/// numbers and capitals in them, are common to both (Jaccard similarity; Broder 1997).
class NearDuplicates {
 public:
  explicit NearDuplicates(const std::vector<std::string>& texts);
  /// Whether the set holds a near duplicate of `text`.
  bool contains(std::string_view text) const;

 private:
  std::vector<std::size_t> sizes_;                                  // phrases of each text
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> in_;  // texts with a phrase
};

}  // namespace tern::problems
