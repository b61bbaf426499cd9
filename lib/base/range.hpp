/// Contiguous parts of arrays, and their location in a larger one.
#pragma once
#include <algorithm>
#include <cstddef>

namespace tern {

/// Elements [first, first + count).
struct Range {
  std::size_t first, count;
  std::size_t end() const { return first + count; }
  bool contains(std::size_t element) const { return element >= first && element < end(); }
};

/// Rows of `times` each, of a range of groups.
inline Range operator*(std::size_t times, Range groups) {
  return {times * groups.first, times * groups.count};
}

/// Intersection of a and b; may be empty.
inline Range common(Range a, Range b) {
  const std::size_t first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.end(), b.end())) - first};
}

/// A range of a whole, held as elements [local, local + count) of an array.
struct Slice : Range {
  std::size_t local;
  /// Index in the array of an element of the whole.
  std::size_t local_of(std::size_t element) const { return local + (element - first); }
};

}  // namespace tern
