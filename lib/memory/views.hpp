/// The views of the project: unmanaged, row-major (LayoutRight), in the memory of the default
/// device. One legend everywhere: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value
/// heads, E head size, F ffn, V vocabulary. Beside each view stands its shape, as // (N, D).
#pragma once
#include <Kokkos_Core.hpp>

#include "base/types.hpp"

namespace tern {

using Device = Kokkos::DefaultExecutionSpace;
using DeviceMemory = Device::memory_space;
using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;

template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
template <class T>
using Tensor3 = Kokkos::View<T***, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
/// (B, T, heads, E) with any strides but a unit one in E: a part of a fused buffer, or of a cache.
template <class T>
using Heads = Kokkos::View<T****, Kokkos::LayoutStride, DeviceMemory, Unmanaged>;

/// Host copies: for batches, results and checkpoints.
template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// The (B, T, heads, E) part of a fused (N, width) buffer that starts at column `first`.
template <class T>
Heads<T> heads_of(const Matrix<T>& fused, std::size_t first, std::size_t batch, std::size_t tokens,
                  std::size_t heads, std::size_t head_size) {
  const std::size_t width = fused.extent(1);
  T* data = fused.data() ? fused.data() + first : nullptr;
  return Heads<T>(data, Kokkos::LayoutStride(batch, tokens * width, tokens, width, heads, head_size,
                                             head_size, 1));
}

/// The same numbers with another shape.
template <class T>
Matrix<T> as_matrix(T* data, std::size_t rows, std::size_t columns) {
  return Matrix<T>(data, rows, columns);
}

}  // namespace tern
