/// Things of different sizes into rows of one size.
#pragma once
#include <cstdint>
#include <vector>

namespace tern::data::detail {

/// Best fit decreasing (Johnson et al. 1974): the larger first, those of one size in a
/// pseudo-random order given by `seed`, each goes to the fullest row that has room for it, else to
/// a new one; the rows are shuffled at last. Returns the things of each row. Things of size 0 are
/// left out; none may be larger than `capacity`. O(n log n + n * capacity / 64).
std::vector<std::vector<std::size_t>> pack(const std::vector<std::uint32_t>& sizes,
                                           std::size_t capacity, std::uint64_t seed);

}  // namespace tern::data::detail
