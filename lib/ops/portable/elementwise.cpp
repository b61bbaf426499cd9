#include "base/random.hpp"
#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {

template <class T>
void dropout(const Context& context, const DropoutKey& key, Matrix<T> x) {
  using A = Accumulate<T>;
  if (key.probability <= 0) return;
  const A scale = static_cast<A>(1 / (1 - key.probability));
  const float threshold = static_cast<float>(key.probability);
  const std::size_t width = x.extent(1), groups = (width + 3) / 4;  // four numbers a draw
  const DropoutKey k = key;
  detail::for_each(
      context, "dropout", x.extent(0) * groups, KOKKOS_LAMBDA(const std::size_t i) {
        const std::size_t row = i / groups, group = i % groups;
        const std::uint32_t position =
            (k.layer << 20) | static_cast<std::uint32_t>(group);  // widths below 4 Mi
        const Random4 draw = philox(k.seed, Stream::dropout, k.step,
                                    k.first_row + static_cast<std::uint32_t>(row), position);
        for (std::size_t j = 0; j < 4; ++j) {
          const std::size_t column = 4 * group + j;
          if (column >= width) break;
          T& value = x(row, column);
          value = uniform(draw.word[j]) < threshold ? T(0) : T(A(value) * scale);
        }
      });
}

template <class T>
void add(const Context& context, Matrix<const T> x, Matrix<T> y) {
  using A = Accumulate<T>;
  const T* in = x.data();
  T* out = y.data();
  detail::for_each(
      context, "add", x.size(),
      KOKKOS_LAMBDA(const std::size_t i) { out[i] = T(A(out[i]) + A(in[i])); });
}

template <class T>
void sum(const Context& context, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c,
         Matrix<T> to) {
  using A = Accumulate<T>;
  const std::size_t rows = to.extent(0), width = to.extent(1);
  const Matrix<const T> terms[] = {a, b, c};
  const T* from[3];
  std::size_t stride[3];
  for (int k = 0; k < 3; ++k) {
    const std::size_t own = terms[k].extent(0);
    from[k] = own == 0 ? nullptr : terms[k].data();
    stride[k] = own == 1 ? 0 : width;
  }
  const T *pa = from[0], *pb = from[1], *pc = from[2];
  const std::size_t sa = stride[0], sb = stride[1], sc = stride[2];
  const int columns = static_cast<int>(width);
  detail::for_each_row(
      context, "sum", rows, KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const auto n = static_cast<std::size_t>(row);
        T* out = &to(n, 0);
        detail::columns(team, columns, [&](const int i) {
          A total = 0;
          if (pa) total += A(pa[n * sa + i]);
          if (pb) total += A(pb[n * sb + i]);
          if (pc) total += A(pc[n * sc + i]);
          out[i] = T(total);
        });
      });
}

template <class From, class To>
void convert(const Context& context, Vector<const From> from, Vector<To> to) {
  const From* in = from.data();
  To* out = to.data();
  detail::for_each(
      context, "convert", from.size(), KOKKOS_LAMBDA(const std::size_t i) {
        out[i] = static_cast<To>(static_cast<Accumulate<From>>(in[i]));
      });
}

template <class A>
void move_average(const Context& context, double decay, Vector<const A> values, Vector<A> average) {
  const A share = static_cast<A>(1 - decay);
  detail::for_each(
      context, "move_average", values.size(),
      KOKKOS_LAMBDA(const std::size_t i) { average(i) += share * (values(i) - average(i)); });
}

template <class A>
void exchange(const Context& context, Vector<A> a, Vector<A> b) {
  detail::for_each(
      context, "exchange", a.size(), KOKKOS_LAMBDA(const std::size_t i) {
        const A kept = a(i);
        a(i) = b(i);
        b(i) = kept;
      });
}

template void move_average<float>(const Context&, double, Vector<const float>, Vector<float>);
template void move_average<double>(const Context&, double, Vector<const double>, Vector<double>);
template void exchange<float>(const Context&, Vector<float>, Vector<float>);
template void exchange<double>(const Context&, Vector<double>, Vector<double>);

#define INSTANTIATE(T)                                                                    \
  template void dropout<T>(const Context&, const DropoutKey&, Matrix<T>);                 \
  template void add<T>(const Context&, Matrix<const T>, Matrix<T>);                       \
  template void sum<T>(const Context&, Matrix<const T>, Matrix<const T>, Matrix<const T>, \
                       Matrix<T>);                                                        \
  template void convert<T, float>(const Context&, Vector<const T>, Vector<float>);        \
  template void convert<T, double>(const Context&, Vector<const T>, Vector<double>);      \
  template void convert<T, bf16>(const Context&, Vector<const T>, Vector<bf16>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops::portable
