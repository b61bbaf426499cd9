#include "ops/portable/detail/loops.hpp"
#include "ops/portable/detail/strips.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {

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
  detail::add_tokens<T>(context, tokens, 0, order, dx, dtable);
  if (dpositions.extent(0) > 0)
    detail::add_positions<T>(context, dx, tokens_per_sequence, dpositions);
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
