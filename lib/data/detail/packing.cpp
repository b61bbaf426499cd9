#include "data/detail/packing.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "data/reader.hpp"

namespace tern::data::detail {
namespace {

/// Open rows, by remaining room.
class OpenRows {
 public:
  explicit OpenRows(std::size_t capacity) : rows_(capacity + 1), bits_(capacity / 64 + 1) {}

  void add(std::size_t row, std::size_t room) {
    rows_[room].push_back(row);
    bits_[room / 64] |= std::uint64_t{1} << room % 64;
  }

  /// Smallest remaining room >= `size` of any open row; capacity + 1 if there is none.
  std::size_t least_room(std::size_t size) const {
    std::size_t word = size / 64;
    std::uint64_t bits = bits_[word] & ~std::uint64_t{0} << size % 64;
    while (bits == 0 && ++word < bits_.size()) bits = bits_[word];
    return bits == 0 ? rows_.size() : word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  bool has(std::size_t room) const { return room < rows_.size(); }

  std::size_t take(std::size_t room) {
    const std::size_t row = rows_[room].back();
    rows_[room].pop_back();
    if (rows_[room].empty()) bits_[room / 64] &= ~(std::uint64_t{1} << room % 64);
    return row;
  }

 private:
  std::vector<std::vector<std::size_t>> rows_;  // by room
  std::vector<std::uint64_t> bits_;             // one per room: whether any row has it
};

/// Items of nonzero size by decreasing size, equal sizes in pseudo-random order.
std::vector<std::size_t> packing_order(const std::vector<std::uint32_t>& sizes,
                                       std::uint64_t seed) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t item = shuffled_row(i, sizes.size(), seed);
    if (sizes[item] > 0) order.push_back(item);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

/// Rows in pseudo-random order, so that long and short samples are spread evenly.
std::vector<std::vector<std::size_t>> shuffled(std::vector<std::vector<std::size_t>> rows,
                                               std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> result(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    result[i] = std::move(rows[shuffled_row(i, rows.size(), seed)]);
  return result;
}

}  // namespace

std::vector<std::vector<std::size_t>> pack(const std::vector<std::uint32_t>& sizes,
                                           std::size_t capacity, std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> rows;
  OpenRows open(capacity);
  for (const std::size_t item : packing_order(sizes, seed)) {
    const std::size_t size = sizes[item];
    TERN_REQUIRE(size <= capacity, "item {} of size {} in rows of {}", item, size, capacity);
    std::size_t room = open.least_room(size), row = rows.size();
    if (open.has(room)) {
      row = open.take(room);
    } else {
      rows.emplace_back();
      room = capacity;
    }
    rows[row].push_back(item);
    if (room > size) open.add(row, room - size);
  }
  return shuffled(std::move(rows), seed);
}

}  // namespace tern::data::detail
