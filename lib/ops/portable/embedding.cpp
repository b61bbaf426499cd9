#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {
namespace {

/// Columns that one work item of the backward pass sums at a time: a vector of them on the host,
/// one on a device, where neighbouring threads take neighbouring columns.
constexpr int strip = detail::on_host ? 64 : 1;

/// sum[0, n) += the rows' strips at `first`, rows named by next(0), next(1), ...
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
  // Tokens are far from equally frequent, so the host's threads take small portions as they go.
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>, Kokkos::Schedule<Kokkos::Dynamic>>
      policy(context.space, 0, items * strips);
  if (detail::on_host) policy.set_chunk_size(64);
  Kokkos::parallel_for(label, policy, Strips<F>{body, width, strips});
}

}  // namespace

template <class T>
void embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                       Matrix<const T> table, Matrix<const T> positions,
                       std::size_t tokens_per_sequence, int first, Matrix<T> x) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1));
  const bool learned = positions.extent(0) > 0;
  detail::for_each_row(
      context, "embedding_forward", x.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = &table(tokens(row), 0);
        T* out = &x(row, 0);
        if (learned) {
          const T* position = &positions(first + row % tokens_per_sequence, 0);
          detail::columns(team, width, [&](int i) { out[i] = T(A(in[i]) + A(position[i])); });
        } else {
          detail::columns(team, width, [&](int i) { out[i] = in[i]; });
        }
      });
}

template <class T>
void embedding_add(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1));
  detail::for_each_row(
      context, "embedding_add", x.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = &table(rows(row), 0);
        T* out = &x(row, 0);
        detail::columns(team, width, [&](int i) { out[i] = T(A(out[i]) + A(in[i])); });
      });
}

template <class T>
void embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions) {
  const std::size_t rows = dx.extent(0), width = dx.extent(1);
  // The first row of each token in `order` sums for all of its rows, one after the other.
  for_each_strip(
      context, "embedding_backward", rows, width,
      KOKKOS_LAMBDA(const std::size_t i, const int first, const int n) {
        const std::int32_t token = tokens(order(i));
        if (i > 0 && tokens(order(i - 1)) == token) return;
        std::size_t count = 1;
        while (i + count < rows && tokens(order(i + count)) == token) ++count;
        add_rows<T>(
            dx, count, first, n, [&](std::size_t j) { return order(i + j); },
            &dtable(token, first));
      });
  if (dpositions.extent(0) == 0) return;
  const std::size_t sequences = rows / tokens_per_sequence;
  for_each_strip(
      context, "position_backward", tokens_per_sequence, width,
      KOKKOS_LAMBDA(const std::size_t t, const int first, const int n) {
        add_rows<T>(
            dx, sequences, first, n, [&](std::size_t b) { return b * tokens_per_sequence + t; },
            &dpositions(t, first));
      });
}

#define INSTANTIATE(T)                                                                            \
  template void embedding_forward<T>(const Context&, Vector<const std::int32_t>, Matrix<const T>, \
                                     Matrix<const T>, std::size_t, int, Matrix<T>);               \
  template void embedding_add<T>(const Context&, Vector<const std::int32_t>, Matrix<const T>,     \
                                 Matrix<T>);                                                      \
  template void embedding_backward<T>(const Context&, Vector<const std::int32_t>,                 \
                                      Vector<const std::int32_t>, Matrix<const T>, std::size_t,   \
                                      Matrix<Accumulate<T>>, Matrix<Accumulate<T>>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops::portable
