#include "ops/loss/embedding.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/loss/portable/detail/strips.hpp"

namespace tern::ops {
using namespace portable;
namespace {

/// Checks the shapes of rows x (N, D), their tokens and their table.
template <class I, class W, class X>
void require_rows(const I& tokens, const W& table, const X& x) {
  TERN_REQUIRE(table.extent(1) == x.extent(1) && tokens.extent(0) >= x.extent(0),
               "{} tokens, a table of {} columns, ({}, {}) rows", tokens.extent(0), table.extent(1),
               x.extent(0), x.extent(1));
}

}  // namespace

template <class T>
void embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                       Matrix<const T> table, Matrix<const T> positions,
                       std::size_t tokens_per_sequence, int first, Matrix<T> x) {
  require_rows(tokens, table, x);
  if (native<&embedding_forward<T>>(context, tokens, table, positions, tokens_per_sequence, first,
                                    x))
    return;
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1));
  const bool learned = positions.extent(0) > 0;
  detail::for_each_row(
      context, "tern::embedding_forward", x.extent(0),
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
  require_rows(rows, table, x);
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1));
  detail::for_each_row(
      context, "tern::embedding_add", x.extent(0),
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
  require_rows(tokens, dtable, dx);
  if (native<&embedding_backward<T>>(context, tokens, order, dx, tokens_per_sequence, dtable,
                                     dpositions))
    return;
  detail::add_tokens<T>(context, tokens, 0, order, dx, dtable);
  if (dpositions.extent(0) > 0)
    detail::add_positions<T>(context, dx, tokens_per_sequence, dpositions);
}

#define INSTANTIATE(T)                                          \
  template decltype(embedding_forward<T>) embedding_forward<T>; \
  template decltype(embedding_add<T>) embedding_add<T>;         \
  template decltype(embedding_backward<T>) embedding_backward<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
