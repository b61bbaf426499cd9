#include "ops/elementwise/elementwise.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops {
namespace portable {

/// Of a sum; each may be null.
template <class T>
struct SumTerms {
  const T *a, *b, *c;
  /// Of the numbers at these places.
  KOKKOS_INLINE_FUNCTION T sum(std::size_t at_a, std::size_t at_b, std::size_t at_c) const {
    using A = Accumulate<T>;
    A total = 0;
    if (a) total += A(a[at_a]);
    if (b) total += A(b[at_b]);
    if (c) total += A(c[at_c]);
    return T(total);
  }
};

}  // namespace portable
using namespace portable;

template <class T>
void Add<T>::check() const {
  TERN_REQUIRE(x.size() == y.size(), "{} added to {}", x.size(), y.size());
}

template <class T>
void Add<T>::portable(const Context& context, const Add& call) {
  using A = Accumulate<T>;
  const T* in = call.x.data();
  T* out = call.y.data();
  detail::for_each(
      context, "tern::add", call.x.size(),
      KOKKOS_LAMBDA(const std::size_t i) { out[i] = T(A(out[i]) + A(in[i])); });
}

template <class T>
void Sum<T>::check() const {
  for (const Matrix<const T>& term : {a, b, c})
    TERN_REQUIRE(term.extent(0) == 0 || ((term.extent(0) == 1 || term.extent(0) == to.extent(0)) &&
                                         term.extent(1) == to.extent(1)),
                 "({}, {}) in a sum of ({}, {})", term.extent(0), term.extent(1), to.extent(0),
                 to.extent(1));
}

template <class T>
void Sum<T>::portable(const Context& context, const Sum& call) {
  const std::size_t rows = call.to.extent(0), width = call.to.extent(1);
  const Matrix<const T> terms[] = {call.a, call.b, call.c};
  const T* from[3];
  std::size_t stride[3];
  bool repeated = false;
  for (int k = 0; k < 3; ++k) {
    const std::size_t own = terms[k].extent(0);
    from[k] = own == 0 ? nullptr : terms[k].data();
    stride[k] = own == 1 ? 0 : width;
    repeated |= own == 1 && rows > 1;
  }
  const SumTerms<T> all{from[0], from[1], from[2]};
  T* const out = call.to.data();
  if (!repeated)
    return detail::for_each(
        context, "tern::sum", call.to.size(),
        KOKKOS_LAMBDA(const std::size_t i) { out[i] = all.sum(i, i, i); });
  const std::size_t sa = stride[0], sb = stride[1], sc = stride[2];
  const int columns = static_cast<int>(width);
  detail::for_each_row(
      context, "tern::sum", rows, KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const auto n = static_cast<std::size_t>(row);
        detail::columns(team, columns, [&](const int i) {
          out[n * width + i] = all.sum(n * sa + i, n * sb + i, n * sc + i);
        });
      });
}

template <class T>
void make_sum(const Context& context, const PendingSum<T>& s) {
  if (s.dropout.probability == 0)
    return run(context, Sum<T>{.a = s.a, .b = s.b, .c = s.c, .to = s.to});
  TERN_REQUIRE(s.c.extent(0) == 0, "a third term of {} rows next to dropout", s.c.extent(0));
  run(context, Dropout<T>{.key = s.dropout, .x = s.b, .added = s.a, .y = s.to});
}

template <class From, class To>
void Convert<From, To>::check() const {
  TERN_REQUIRE(from.size() == to.size(), "{} to {}", from.size(), to.size());
}

template <class From, class To>
void Convert<From, To>::portable(const Context& context, const Convert& call) {
  const From* in = call.from.data();
  To* out = call.to.data();
  detail::for_each(
      context, "tern::convert", call.from.size(), KOKKOS_LAMBDA(const std::size_t i) {
        out[i] = static_cast<To>(static_cast<Accumulate<From>>(in[i]));
      });
}

TERN_INSTANTIATE_PORTABLE(Add)
TERN_INSTANTIATE_PORTABLE(Sum)
#define INSTANTIATE(T)                                             \
  template void make_sum<T>(const Context&, const PendingSum<T>&); \
  template struct Convert<T, float>;                               \
  template struct Convert<T, double>;                              \
  template struct Convert<T, bf16>;                                \
  template struct Convert<T, fp16>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
