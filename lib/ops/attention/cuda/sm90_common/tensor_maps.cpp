#include "ops/attention/cuda/sm90_common/tensor_maps.hpp"

#include "base/error.hpp"
#include "ops/attention/cuda/sm90_common/fragments.hpp"

namespace tern::ops::cuda::sm90 {
namespace {

constexpr cuuint32_t box_rows = 64;

/// Map for boxes of 64 rows and 64 columns of one head. Copies do not interpret the numbers: it
/// serves any type of 16 bits.
CUresult make_map(CUtensorMap& map, const View& view) {
  const auto extent = [](int n) { return static_cast<cuuint64_t>(n); };
  const auto bytes = [](std::int64_t stride) { return static_cast<cuuint64_t>(2 * stride); };
  const cuuint64_t extents[] = {extent(view.head_size), extent(view.heads), extent(view.tokens),
                                extent(view.batch)};
  const cuuint64_t strides[] = {bytes(view.head_stride), bytes(view.row_stride),
                                bytes(view.batch_stride)};
  const cuuint32_t box[] = {hopper::tile_width, 1, box_rows, 1}, steps[] = {1, 1, 1, 1};
  return cuTensorMapEncodeTiled(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(view.data), extents, strides,
      box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace

const CUtensorMap& TensorMaps::of(const View& view) {
  auto at = maps_.find(view);
  if (at != maps_.end()) return at->second;
  CUtensorMap map;
  const CUresult result = make_map(map, view);
  TERN_REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled of {} x {} x {} x {}: {}",
               view.batch, view.tokens, view.heads, view.head_size, static_cast<int>(result));
  return maps_.emplace(view, map).first->second;
}

}  // namespace tern::ops::cuda::sm90
