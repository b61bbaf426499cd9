/// Host side of grouped products: choice of tiles, and launches. Extents that are not multiples of
/// 16 bytes are declined.

#include <limits>

#include "ops/core/cuda/kernels.hpp"
#include "ops/moe/cuda/detail/grouped_product.hpp"
#include "ops/moe/experts.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace grouped;

int size(std::size_t extent) {
  TERN_REQUIRE(extent <= std::numeric_limits<int>::max(), "an extent of {}", extent);
  return static_cast<int>(extent);
}

template <class V>
const Bits* bits(const V* numbers) {
  return reinterpret_cast<const Bits*>(numbers);
}
template <class V>
Stored stored(const Gathered<V>& g) {
  return {bits(g.values.data()), g.rows.extent(0) > 0 ? g.rows.data() : nullptr,
          size(g.values.extent(1))};
}

bool whole_packs(std::initializer_list<std::size_t> extents) {
  for (const std::size_t extent : extents)
    if (extent % piece_size != 0) return false;
  return true;
}

template <class V, Kind kind, class T>
void launch(const Context& context, const char* name, const Arguments& args, std::size_t down,
            std::size_t groups) {
  constexpr std::size_t limit = 65535;  // grid limit in y and z
  TERN_REQUIRE(down <= limit && groups <= limit, "{}: {} tiles, {} groups", name, down, groups);
  const dim3 grid(detail::blocks_for(args.n, T::columns), static_cast<unsigned>(down),
                  static_cast<unsigned>(groups));
  cudaFuncSetAttribute(product<V, kind, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       T::shared_bytes);
  product<V, kind, T><<<grid, threads, T::shared_bytes, detail::stream_of(context)>>>(args);
  detail::check_launch(name);
}

/// forward or backward_input; false where the shapes are not served.
template <Kind kind, class V>
bool multiply_rows(const Context& context, const char* name, Vector<const std::int32_t> offsets,
                   const Gathered<V>& x, const Grouped<const V>& w, Matrix<V> y) {
  if (!whole_packs({w.rows, w.columns, w.stride}) ||
      !detail::all_aligned(x.values.data(), w.data, y.data()))
    return false;
  const std::size_t rows = y.extent(0);
  const Arguments args{offsets.data(),
                       size(w.count),
                       stored(x),
                       {bits(w.data), nullptr, size(w.columns)},
                       static_cast<std::int64_t>(w.stride),
                       0,
                       y.data(),
                       0,
                       size(y.extent(1)),
                       size(x.values.extent(1))};
  const auto with = [&]<class T>(T) {
    launch<V, kind, T>(context, name, args, max_tiles(rows, w.count, T::rows), 1);
  };
  switch (size_for(rows, w.count)) {
    case Size::small:
      with(Small());
      break;
    case Size::medium:
      with(Medium());
      break;
    case Size::large:
      with(Large());
      break;
  }
  return true;
}

}  // namespace

template <class T>
bool native_grouped_forward(const Context& context, Vector<const std::int32_t> offsets,
                            const Gathered<T>& x, const Grouped<const T>& w, Matrix<T> y) {
  if (y.size() == 0) return true;
  return multiply_rows<Kind::forward>(context, "grouped_forward", offsets, x, w, y);
}

template <class T>
bool native_grouped_backward_input(const Context& context, Vector<const std::int32_t> offsets,
                                   const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx) {
  if (dx.size() == 0) return true;
  return multiply_rows<Kind::backward_input>(context, "grouped_backward_input", offsets, dy, w, dx);
}

template <class T>
bool native_grouped_backward_weight(const Context& context, Vector<const std::int32_t> offsets,
                                    const Gathered<T>& dy, const Gathered<T>& x,
                                    const Grouped<float>& dw) {
  if (dw.rows * dw.columns == 0 || dy.values.size() == 0) return true;
  if (!whole_packs({dw.rows, dw.columns, dw.stride}) ||
      !detail::all_aligned(dy.values.data(), x.values.data()) || !detail::aligned_16(dw.data))
    return false;
  const Arguments args{offsets.data(),
                       size(dw.count),
                       stored(dy),
                       stored(x),
                       0,
                       static_cast<std::int64_t>(dw.stride),
                       dw.data,
                       size(dw.rows),
                       size(dw.columns),
                       0};
  launch<T, Kind::backward_weight, Large>(context, "grouped_backward_weight", args,
                                          detail::divide_up<std::size_t>(dw.rows, Large::rows),
                                          dw.count);
  return true;
}

#define INSTANTIATE(T)                                                                  \
  template decltype(native_grouped_forward<T>) native_grouped_forward<T>;               \
  template decltype(native_grouped_backward_input<T>) native_grouped_backward_input<T>; \
  template decltype(native_grouped_backward_weight<T>) native_grouped_backward_weight<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
