#include "ops/elementwise/elementwise.hpp"
#include "ops/core/cuda/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

template <class T>
__global__ void add_packs(const T* x, T* y, std::size_t packs) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  if (at >= packs) return;
  Pack sum = Pack::load(y + at * pack_size);
  const Pack more = Pack::load(x + at * pack_size);
  for (int i = 0; i < pack_size; ++i) sum.value[i] += more.value[i];
  sum.store(y + at * pack_size);
}

/// Rows are `stride` packs apart: 0 repeats one row. Null data: no term.
template <class T>
struct Term {
  const T* data;
  std::size_t stride;
};
template <class T>
__global__ void sum_packs(Term<T> a, Term<T> b, Term<T> c, T* to, std::size_t width,
                          std::size_t packs) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  if (at >= packs) return;
  const std::size_t row = at / width, column = at % width;
  Pack total{};
  for (const Term<T>& term : {a, b, c}) {
    if (!term.data) continue;
    const Pack more = Pack::load(term.data + (row * term.stride + column) * pack_size);
    for (int i = 0; i < pack_size; ++i) total.value[i] += more.value[i];
  }
  total.store(to + at * pack_size);
}

/// The last thread takes the remainder after whole packs.
template <class From, class To>
__global__ void convert_packs(const From* from, To* to, std::size_t n) {
  const std::size_t at = (std::size_t(blockIdx.x) * block_threads + threadIdx.x) * pack_size;
  if (at + pack_size <= n)
    Pack::load(from + at).store(to + at);
  else
    for (std::size_t i = at; i < n; ++i) to[i] = To(float(from[i]));
}

template <class From, class To>
bool convert_any(const Context& context, Vector<const From> from, Vector<To> to) {
  const std::size_t n = to.size();
  if (n == 0) return true;
  if (!all_aligned(from.data(), to.data())) return false;
  convert_packs<<<blocks_for(divide_up<std::size_t>(n, pack_size), block_threads), block_threads, 0,
                  stream_of(context)>>>(from.data(), to.data(), n);
  check_launch("convert");
  return true;
}

}  // namespace

template <class T>
bool native_add(const Context& context, Matrix<const T> x, Matrix<T> y) {
  if (y.size() == 0) return true;
  if (!all_aligned(x.data(), y.data()) || y.size() % pack_size != 0) return false;
  const std::size_t packs = y.size() / pack_size;
  add_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      x.data(), y.data(), packs);
  check_launch("add");
  return true;
}

template <class T>
bool native_sum(const Context& context, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c,
                Matrix<T> to) {
  if (to.size() == 0) return true;
  if (!all_aligned(a.data(), b.data(), c.data(), to.data()) || to.extent(1) % pack_size != 0)
    return false;
  const std::size_t width = to.extent(1) / pack_size, packs = to.size() / pack_size;
  const auto term = [&](const Matrix<const T>& m) {
    return Term<T>{m.size() == 0 ? nullptr : m.data(), m.extent(0) == 1 ? 0 : width};
  };
  sum_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      term(a), term(b), term(c), to.data(), width, packs);
  check_launch("sum");
  return true;
}

template <class T>
bool native_narrow(const Context& context, Vector<const float> from, Vector<T> to) {
  return convert_any<float, T>(context, from, to);
}

template <class T>
bool native_widen(const Context& context, Vector<const T> from, Vector<float> to) {
  return convert_any<T, float>(context, from, to);
}

#define INSTANTIATE(T)                                  \
  template decltype(native_add<T>) native_add<T>;       \
  template decltype(native_sum<T>) native_sum<T>;       \
  template decltype(native_narrow<T>) native_narrow<T>; \
  template decltype(native_widen<T>) native_widen<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
