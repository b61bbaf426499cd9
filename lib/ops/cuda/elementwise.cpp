#include "ops/elementwise.hpp"
#include "ops/cuda/detail/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;

__global__ void add_packs(const bf16* x, bf16* y, std::size_t packs) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  if (at >= packs) return;
  Pack sum = Pack::load(y + at * pack_size);
  const Pack more = Pack::load(x + at * pack_size);
  for (int i = 0; i < pack_size; ++i) sum.value[i] += more.value[i];
  sum.store(y + at * pack_size);
}

/// Rows are `stride` packs apart: 0 repeats one row. Null data: no term.
struct Term {
  const bf16* data;
  std::size_t stride;
};
__global__ void sum_packs(Term a, Term b, Term c, bf16* to, std::size_t width, std::size_t packs) {
  const std::size_t at = std::size_t(blockIdx.x) * block_threads + threadIdx.x;
  if (at >= packs) return;
  const std::size_t row = at / width, column = at % width;
  Pack total{};
  for (const Term& term : {a, b, c}) {
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

bool native_add(const Context& context, Matrix<const bf16> x, Matrix<bf16> y) {
  if (y.size() == 0) return true;
  if (!all_aligned(x.data(), y.data()) || y.size() % pack_size != 0) return false;
  const std::size_t packs = y.size() / pack_size;
  add_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      x.data(), y.data(), packs);
  check_launch("add");
  return true;
}

bool native_sum(const Context& context, Matrix<const bf16> a, Matrix<const bf16> b,
                Matrix<const bf16> c, Matrix<bf16> to) {
  if (to.size() == 0) return true;
  if (!all_aligned(a.data(), b.data(), c.data(), to.data()) || to.extent(1) % pack_size != 0)
    return false;
  const std::size_t width = to.extent(1) / pack_size, packs = to.size() / pack_size;
  const auto term = [&](const Matrix<const bf16>& m) {
    return Term{m.size() == 0 ? nullptr : m.data(), m.extent(0) == 1 ? 0 : width};
  };
  sum_packs<<<blocks_for(packs, block_threads), block_threads, 0, stream_of(context)>>>(
      term(a), term(b), term(c), to.data(), width, packs);
  check_launch("sum");
  return true;
}

bool native_narrow(const Context& context, Vector<const float> from, Vector<bf16> to) {
  return convert_any<float, bf16>(context, from, to);
}

bool native_widen(const Context& context, Vector<const bf16> from, Vector<float> to) {
  return convert_any<bf16, float>(context, from, to);
}

}  // namespace tern::ops
