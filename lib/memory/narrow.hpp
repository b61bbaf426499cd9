/// Arena buffers narrowed to the rows of a pass, or carved from a common allocation.
#pragma once
#include "base/range.hpp"
#include "memory/arena.hpp"

namespace tern {

/// Rows of a matrix, or elements of a vector; an empty one stays empty.
template <class V>
V rows_of(const V& all, Range rows) {
  if (all.extent(0) == 0) return all;
  if constexpr (V::rank == 1)
    return V(all.data() + rows.first, rows.count);
  else
    return V(all.data() + rows.first * all.extent(1), rows.count, all.extent(1));
}

/// The first `rows` of it.
template <class V>
V narrow_rows(const V& view, std::size_t rows) {
  return rows_of(view, {0, rows});
}

/// Carves consecutive matrices from `data`; if that is null, only counts.
template <class T>
struct Carver {
  T* data = nullptr;
  std::size_t used = 0;
  Matrix<T> matrix(std::size_t rows, std::size_t columns) {
    constexpr std::size_t step = Arena::alignment;  // elements, so bytes too
    Matrix<T> result(data ? data + used : nullptr, rows, columns);
    used += (rows * columns + step - 1) / step * step;
    return result;
  }
};

}  // namespace tern
