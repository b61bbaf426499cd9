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

}  // namespace

template <class T>
bool Add<T>::native(const Context& context, const Add& call) {
  if (call.y.size() == 0) return true;
  if (!all_aligned(call.x.data(), call.y.data()) || call.y.size() % pack_size != 0) return false;
  const std::size_t packs = call.y.size() / pack_size;
  add_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      call.x.data(), call.y.data(), packs);
  check_launch("add");
  return true;
}

template <class T>
bool Sum<T>::native(const Context& context, const Sum& call) {
  if (call.to.size() == 0) return true;
  if (!all_aligned(call.a.data(), call.b.data(), call.c.data(), call.to.data()) ||
      call.to.extent(1) % pack_size != 0)
    return false;
  const std::size_t width = call.to.extent(1) / pack_size, packs = call.to.size() / pack_size;
  const auto term = [&](const Matrix<const T>& m) {
    return Term<T>{m.size() == 0 ? nullptr : m.data(), m.extent(0) == 1 ? 0 : width};
  };
  sum_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      term(call.a), term(call.b), term(call.c), call.to.data(), width, packs);
  check_launch("sum");
  return true;
}

template <class From, class To>
bool Convert<From, To>::native(const Context& context, const Convert& call) {
  const std::size_t n = call.to.size();
  if (n == 0) return true;
  if (!all_aligned(call.from.data(), call.to.data())) return false;
  convert_packs<<<blocks_for(divide_up<std::size_t>(n, pack_size), block_threads), block_threads, 0,
                  stream_of(context)>>>(call.from.data(), call.to.data(), n);
  check_launch("convert");
  return true;
}

TERN_INSTANTIATE_NATIVE(Add)
TERN_INSTANTIATE_NATIVE(Sum)
#define INSTANTIATE(From, To) \
  template bool Convert<From, To>::native(const Context&, const Convert<From, To>&);
INSTANTIATE(float, bf16)
INSTANTIATE(float, fp16)
INSTANTIATE(bf16, float)
INSTANTIATE(fp16, float)

}  // namespace tern::ops
