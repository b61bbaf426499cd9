/// Gradients of embeddings: rows of one matrix added to rows of another, in a fixed order.
#pragma once
#include "ops/core/portable/loops.hpp"

namespace tern::ops::portable::detail {

/// Columns per work item of the backward pass: a vector on the host, one on a device, where
/// neighboring threads take neighboring columns.
constexpr int strip = on_host ? 64 : 1;

/// to[0, n) += columns [first, first + n) of the rows next(0), next(1), ... of dx.
template <class T, class Next>
KOKKOS_INLINE_FUNCTION void add_rows(const Matrix<const T>& dx, std::size_t count, int first, int n,
                                     const Next& next, Accumulate<T>* to) {
  using A = Accumulate<T>;
  A sum[strip] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const T* row = &dx(next(i), first);
    TERN_SIMD
    for (int c = 0; c < n; ++c) sum[c] += A(row[c]);
  }
  TERN_SIMD
  for (int c = 0; c < n; ++c) to[c] += sum[c];
}

template <class F>
struct Strips {
  F body;
  std::size_t width, count;

  KOKKOS_FUNCTION void operator()(const std::size_t i) const {
    const std::size_t first = i % count * strip;
    body(i / count, static_cast<int>(first),
         static_cast<int>(Kokkos::min<std::size_t>(strip, width - first)));
  }
};

/// body(item, first column, columns) for all items and strips of `width` columns.
template <class F>
void for_each_strip(const Context& context, const char* label, std::size_t items, std::size_t width,
                    const F& body) {
  const std::size_t strips = (width + strip - 1) / strip;
  // Token frequencies are skewed, so the host schedules small chunks dynamically.
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>, Kokkos::Schedule<Kokkos::Dynamic>>
      policy(context.space, 0, items * strips);
  if (on_host) policy.set_chunk_size(64);
  Kokkos::parallel_for(label, policy, Strips<F>{body, width, strips});
}

/// dtable (W, D) += the rows of dx (N, D) whose token is in [first, first + W).
template <class T>
void add_tokens(const Context& context, Vector<const std::int32_t> tokens, std::size_t first,
                Vector<const std::int32_t> order, Matrix<const T> dx,
                Matrix<Accumulate<T>> dtable) {
  const std::size_t rows = dx.extent(0), width = dx.extent(1);
  const int from = static_cast<int>(first), here = static_cast<int>(dtable.extent(0));
  // The first row of each token in `order` sums all of its rows, in order.
  for_each_strip(
      context, "tern::embedding_backward", rows, width,
      KOKKOS_LAMBDA(const std::size_t i, const int column, const int n) {
        const std::int32_t token = tokens(order(i)), row = token - from;
        if (row < 0 || row >= here || (i > 0 && tokens(order(i - 1)) == token)) return;
        std::size_t count = 1;
        while (i + count < rows && tokens(order(i + count)) == token) ++count;
        add_rows<T>(
            dx, count, column, n, [&](std::size_t j) { return order(i + j); },
            &dtable(row, column));
      });
}

/// dpositions (context, D) += the rows of dx (N, D), row n to position n % tokens_per_sequence.
template <class T>
void add_positions(const Context& context, Matrix<const T> dx, std::size_t tokens_per_sequence,
                   Matrix<Accumulate<T>> dpositions) {
  const std::size_t sequences = dx.extent(0) / tokens_per_sequence;
  for_each_strip(
      context, "tern::position_backward", tokens_per_sequence, dx.extent(1),
      KOKKOS_LAMBDA(const std::size_t t, const int column, const int n) {
        add_rows<T>(
            dx, sequences, column, n, [&](std::size_t b) { return b * tokens_per_sequence + t; },
            &dpositions(t, column));
      });
}

}  // namespace tern::ops::portable::detail
