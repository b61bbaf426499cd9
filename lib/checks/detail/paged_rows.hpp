/// Rows of a pass with a paged cache, for checks, tests and benchmarks of paged attention.
#pragma once
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "checks/detail/run.hpp"
#include "ops/decode/paged_cache.hpp"

namespace tern::checks {

/// Rows of several sequences with scattered pages.
struct CheckedRows {
  std::vector<ops::Segment> segments;
  std::vector<ops::Split> splits;
  std::vector<ops::Piece> tiles;
  std::vector<std::int32_t> tables, positions, table_of, places, first_splits{0};
  std::size_t singles = 0, pages = 0;
};

/// Sequences whose pass has `rows` rows from position `first` on, those of one row first.
inline CheckedRows checked_rows(const std::vector<std::pair<int, int>>& first_and_rows, int P) {
  CheckedRows all;
  int pages = 0;
  for (const auto& [first, rows] : first_and_rows) pages += (first + rows + P - 1) / P;
  all.pages = static_cast<std::size_t>(pages) + 3;
  int step = 7;  // coprime to the number of pages
  while (std::gcd(step, static_cast<int>(all.pages)) != 1) ++step;
  for (const auto& [first, rows] : first_and_rows) {
    const auto segment = static_cast<std::int32_t>(all.segments.size());
    const auto table = static_cast<std::int32_t>(all.tables.size());
    const int end = first + rows;
    all.segments.push_back({static_cast<std::int32_t>(all.positions.size()), rows, first, table});
    for (int i = 0; i < (end + P - 1) / P; ++i)
      all.tables.push_back(static_cast<std::int32_t>(all.tables.size()) * step %
                           static_cast<std::int32_t>(all.pages));
    for (int p = first; p < end; ++p) {
      all.positions.push_back(p);
      all.table_of.push_back(table);
      all.places.push_back(all.tables[static_cast<std::size_t>(table + p / P)] * P + p % P);
    }
    all.singles += rows == 1;
    constexpr int keys = ops::PagedRows::split_keys, tile = ops::PagedRows::tile_rows;
    if (rows == 1) {
      for (int s = 0; s < end; s += keys)
        all.splits.push_back({all.segments.back().row, first, s, table});
      all.first_splits.push_back(static_cast<std::int32_t>(all.splits.size()));
    } else {
      for (int t = first / tile; t * tile < end; ++t) all.tiles.push_back({segment, t});
    }
  }
  return all;
}

template <class T, class S>
Vector<const S> device_copy(Run<T>& r, const std::vector<S>& values) {
  std::vector<std::int32_t> words(values.size() * sizeof(S) / sizeof(std::int32_t));
  if (!values.empty()) std::memcpy(words.data(), values.data(), values.size() * sizeof(S));
  return Vector<const S>(reinterpret_cast<const S*>(r.integers(words).data()), values.size());
}

template <class T>
ops::PagedRows device_rows(Run<T>& r, const CheckedRows& rows) {
  return {rows.singles,
          device_copy(r, rows.segments),
          device_copy(r, rows.tables),
          device_copy(r, rows.positions),
          device_copy(r, rows.table_of),
          device_copy(r, rows.places),
          device_copy(r, rows.splits),
          device_copy(r, rows.first_splits),
          device_copy(r, rows.tiles),
          true};
}

}  // namespace tern::checks
