/// View types: unmanaged, row-major (LayoutRight), in memory of the default device. Legend of
/// shapes: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value heads, E head size,
/// F ffn, V vocabulary. Each view is followed by its shape, as // (N, D).
#pragma once
#include <Kokkos_Core.hpp>

#include "base/types.hpp"

namespace tern {

using Device = Kokkos::DefaultExecutionSpace;
using DeviceMemory = Device::memory_space;
/// Whether the device is the host itself: no GPU.
constexpr bool on_host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;

template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
template <class T>
using Tensor3 = Kokkos::View<T***, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
/// (B, T, heads, E) with unit stride in E, any other strides: part of a fused buffer or a cache.
template <class T>
using Heads = Kokkos::View<T****, Kokkos::LayoutStride, DeviceMemory, Unmanaged>;

/// Host views: batches, results, checkpoints.
template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// (B, T, heads, E) view of the columns from `first` on of a fused (N, width) buffer.
template <class T>
Heads<T> heads_of(const Matrix<T>& fused, std::size_t first, std::size_t batch, std::size_t tokens,
                  std::size_t heads, std::size_t head_size) {
  const std::size_t width = fused.extent(1);
  T* data = fused.data() ? fused.data() + first : nullptr;
  return Heads<T>(data, Kokkos::LayoutStride(batch, tokens * width, tokens, width, heads, head_size,
                                             head_size, 1));
}

/// `data` viewed as (rows, columns).
template <class T>
Matrix<T> as_matrix(T* data, std::size_t rows, std::size_t columns) {
  return Matrix<T>(data, rows, columns);
}

}  // namespace tern
