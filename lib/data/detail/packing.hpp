/// Packing of items of different sizes into rows of one size.
#pragma once
#include <cstdint>
#include <vector>

namespace tern::data::detail {

/// Best fit decreasing (Johnson et al. 1974): items by decreasing size, equal sizes in a
/// pseudo-random order given by `seed`, each into the fullest row with room for it, else into a new
/// one; then shuffles the rows. Returns the items of each row. Items of size 0 are left out; none
/// may exceed `capacity`. O(n log n + n * capacity / 64).
std::vector<std::vector<std::size_t>> pack(const std::vector<std::uint32_t>& sizes,
                                           std::size_t capacity, std::uint64_t seed);

}  // namespace tern::data::detail
