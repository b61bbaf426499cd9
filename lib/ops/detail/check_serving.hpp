/// The checks of the operations of serving.hpp, for checks.cpp: `checker` runs a body for each
/// storage type.
#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "ops/detail/check_run.hpp"
#include "ops/serving.hpp"

namespace tern::ops::detail {

/// Rows of several sequences, with pages that lie anywhere.
struct CheckedRows {
  std::vector<Segment> segments;
  std::vector<Piece> splits, tiles;
  std::vector<std::int32_t> tables, positions, table_of, places;
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
    constexpr int keys = PagedRows::split_keys, tile = PagedRows::tile_rows;
    if (rows == 1)
      for (int s = 0; s * keys < end; ++s) all.splits.push_back({segment, s});
    else
      for (int t = first / tile; t * tile < end; ++t) all.tiles.push_back({segment, t});
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
PagedRows device_rows(Run<T>& r, const CheckedRows& rows) {
  return {rows.singles,
          device_copy(r, rows.segments),
          device_copy(r, rows.tables),
          device_copy(r, rows.positions),
          device_copy(r, rows.table_of),
          device_copy(r, rows.places),
          device_copy(r, rows.splits),
          device_copy(r, rows.tiles)};
}

inline void check_paged(Checker& checker, std::size_t H, std::size_t K, std::size_t E,
                        std::size_t P, const std::vector<std::pair<int, int>>& first_and_rows) {
  const CheckedRows host = checked_rows(first_and_rows, static_cast<int>(P));
  const std::size_t N = host.positions.size(), width = (H + 2 * K) * E;
  std::int32_t last = 0;
  for (const std::int32_t p : host.positions) last = std::max(last, p);
  const std::string shape = fmt::format("N {} of {} to {} tokens, H {} K {} E {} P {}", N,
                                        host.segments.size(), last + 1, H, K, E, P);
  const auto cache_of = [=]<class T>(const Matrix<T>& keys, const Matrix<T>& values) {
    const auto pages = [&](const Matrix<T>& m) {
      return Tensor3<T>(m.data(), host.pages, K, P * E);
    };
    return PagedCache<T>{pages(keys), pages(values), P};
  };
  for (const auto& [rotated, normed] : {std::pair{true, false}, {false, false}, {true, true}})
    checker.check(normed    ? "paged_store, normed"
                  : rotated ? "paged_store"
                            : "paged_store, as it is",
                  shape, [=, rotated = rotated, normed = normed]<class T>(Run<T>& r) {
                    using A = Accumulate<T>;
                    const PagedRows rows = device_rows(r, host);
                    const auto table = r.template input<A>(static_cast<std::size_t>(last) + 1, E);
                    const auto keys = r.inout(host.pages * K, P * E);
                    const auto values = r.inout(host.pages * K, P * E);
                    const std::size_t gains = normed ? E : 0;
                    const HeadStage<T> stage{r.input(gains), r.input(gains), 1e-5,
                                             rotated ? table : Matrix<A>()};
                    paged_store<T>(r.context, rows, r.inout(N, width), H, stage,
                                   cache_of(keys, values));
                  });
  checker.check("paged_attention", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const PagedRows rows = device_rows(r, host);
    const auto keys = r.input(host.pages * K, P * E), values = r.input(host.pages * K, P * E);
    const auto partial = r.template workspace<A>(paged_partials(host.splits.size(), H, E));
    paged_attention<T>(r.context, rows, 1 / std::sqrt(static_cast<double>(E)), r.input(N, width),
                       cache_of(keys, values), partial, r.output(N, H * E));
  });
}

inline void check_serving(Checker& checker) {
  // Decoding rows, pieces from a beginning, from behind one, over several tiles, of two rows.
  const std::vector<std::pair<int, int>> mixed{{0, 1},  {255, 1}, {256, 1}, {700, 1},
                                               {0, 77}, {63, 2},  {70, 60}, {100, 157}};
  for (const std::size_t E : {32, 64, 128}) check_paged(checker, 8, 2, E, 16, mixed);
  check_paged(checker, 32, 8, 128, 16, mixed);
  check_paged(checker, 3, 3, 64, 4, mixed);
  check_paged(checker, 16, 1, 128, 64, mixed);
  check_paged(checker, 34, 2, 64, 16, mixed);  // groups of 17
  check_paged(checker, 4, 2, 40, 16, mixed);
  check_paged(checker, 8, 2, 128, 16, {{2999, 1}, {31, 1}});
  check_paged(checker, 8, 2, 128, 16, {{0, 300}});
}

}  // namespace tern::ops::detail
