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
bool GroupedForward<T>::native(const Context& context, const GroupedForward& call) {
  if (call.y.size() == 0) return true;
  return multiply_rows<Kind::forward>(context, "grouped_forward", call.offsets, call.x, call.w,
                                      call.y);
}

template <class T>
bool GroupedBackwardInput<T>::native(const Context& context, const GroupedBackwardInput& call) {
  if (call.dx.size() == 0) return true;
  return multiply_rows<Kind::backward_input>(context, "grouped_backward_input", call.offsets,
                                             call.dy, call.w, call.dx);
}

template <class T>
bool GroupedBackwardWeight<T>::native(const Context& context, const GroupedBackwardWeight& call) {
  if (call.dw.rows * call.dw.columns == 0 || call.dy.values.size() == 0) return true;
  if (!whole_packs({call.dw.rows, call.dw.columns, call.dw.stride}) ||
      !detail::all_aligned(call.dy.values.data(), call.x.values.data()) ||
      !detail::aligned_16(call.dw.data))
    return false;
  const Arguments args{call.offsets.data(),
                       size(call.dw.count),
                       stored(call.dy),
                       stored(call.x),
                       0,
                       static_cast<std::int64_t>(call.dw.stride),
                       call.dw.data,
                       size(call.dw.rows),
                       size(call.dw.columns),
                       0};
  launch<T, Kind::backward_weight, Large>(context, "grouped_backward_weight", args,
                                          detail::divide_up<std::size_t>(call.dw.rows, Large::rows),
                                          call.dw.count);
  return true;
}

TERN_INSTANTIATE_NATIVE(GroupedForward)
TERN_INSTANTIATE_NATIVE(GroupedBackwardInput)
TERN_INSTANTIATE_NATIVE(GroupedBackwardWeight)

}  // namespace tern::ops
