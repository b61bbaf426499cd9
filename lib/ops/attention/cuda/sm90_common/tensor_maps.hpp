/// Tensors as the kernels for Hopper take them: views, their TMA maps, the rotation that backward
/// undoes.
#pragma once
#include <cuda.h>

#include <compare>
#include <map>

#include "ops/attention/attention.hpp"

namespace tern::ops::cuda::sm90 {

/// A (B, T, heads, E) tensor of 16-bit numbers; strides in numbers. Addresses and strides are multiples of 16
/// bytes.
struct View {
  const void* data;
  std::int64_t batch_stride, row_stride, head_stride;
  int batch, tokens, heads, head_size;
  auto operator<=>(const View&) const = default;
};

/// The rotation of queries and keys that backward undoes; none if `table` is null.
struct InverseRope {
  const float* table;             // (positions, E): cosines, then sines
  const std::int32_t* positions;  // (B*T), or null: first + token
  int first;
};

template <class T>
View view_of(const Heads<T>& x) {
  const auto stride = [&](int axis) { return static_cast<std::int64_t>(x.stride(axis)); };
  const auto extent = [&](int axis) { return static_cast<int>(x.extent(axis)); };
  return {x.data(), stride(0), stride(1), stride(2), extent(0), extent(1), extent(2), extent(3)};
}

template <class A>
InverseRope inverse_rope_of(const HeadRotation<A>& rotation) {
  const auto& rows = rotation.positions.rows;
  return {rotation.wanted() ? rotation.table.data() : nullptr,
          rows.extent(0) > 0 ? rows.data() : nullptr, rotation.positions.first};
}

/// Maps of views for boxes of 64 rows and 64 columns of one head, each made once.
class TensorMaps {
 public:
  const CUtensorMap& of(const View&);

 private:
  std::map<View, CUtensorMap> maps_;
};

}  // namespace tern::ops::cuda::sm90
