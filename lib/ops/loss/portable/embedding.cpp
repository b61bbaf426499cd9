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
void EmbeddingForward<T>::check() const {
  require_rows(tokens, table, x);
}

template <class T>
void EmbeddingForward<T>::portable(const Context& context, const EmbeddingForward& call) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(call.x.extent(1));
  const bool learned = call.positions.extent(0) > 0;
  detail::for_each_row(
      context, "tern::embedding_forward", call.x.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = &call.table(call.tokens(row), 0);
        T* out = &call.x(row, 0);
        if (learned) {
          const T* position = &call.positions(call.first + row % call.tokens_per_sequence, 0);
          detail::columns(team, width, [&](int i) { out[i] = T(A(in[i]) + A(position[i])); });
        } else {
          detail::columns(team, width, [&](int i) { out[i] = in[i]; });
        }
      });
}

template <class T>
void EmbeddingAdd<T>::check() const {
  require_rows(rows, table, x);
}

template <class T>
void EmbeddingAdd<T>::portable(const Context& context, const EmbeddingAdd& call) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(call.x.extent(1));
  detail::for_each_row(
      context, "tern::embedding_add", call.x.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = &call.table(call.rows(row), 0);
        T* out = &call.x(row, 0);
        detail::columns(team, width, [&](int i) { out[i] = T(A(out[i]) + A(in[i])); });
      });
}

template <class T>
void EmbeddingBackward<T>::check() const {
  require_rows(tokens, dtable, dx);
}

template <class T>
void EmbeddingBackward<T>::portable(const Context& context, const EmbeddingBackward& call) {
  detail::add_tokens<T>(context, call.tokens, 0, call.order, call.dx, call.dtable);
  if (call.dpositions.extent(0) > 0)
    detail::add_positions<T>(context, call.dx, call.tokens_per_sequence, call.dpositions);
}

TERN_INSTANTIATE_PORTABLE(EmbeddingForward)
TERN_INSTANTIATE_PORTABLE(EmbeddingAdd)
TERN_INSTANTIATE_PORTABLE(EmbeddingBackward)

}  // namespace tern::ops
