/// Copies ranges of a device array to scattered places in host memory, without a host copy of the
/// array: through two page-locked buffers, one filled by the device while the other is emptied.
#pragma once
#include <vector>

#include "base/range.hpp"
#include "ops/core/context.hpp"

namespace tern::weights {

/// A range of the array and where it goes.
struct Run : Range {
  float* to;
};

class HostCopy {
 public:
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
  using Buffer = Kokkos::View<float*, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;
#else
  using Buffer = HostVector<float>;
#endif
  static constexpr bool device_is_host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;

  /// `staged`: through buffers of `chunk` elements; otherwise directly, for arrays in host memory.
  explicit HostCopy(bool staged = !device_is_host, std::size_t chunk = std::size_t{4} << 20)
      : staged_(staged), chunk_(chunk) {}

  /// Returns when all values are in place. The runs must not overlap; in any order.
  void copy(const ops::Context& context, const Vector<float>& array, std::vector<Run> runs);

 private:
  bool staged_;
  std::size_t chunk_;
  Buffer buffers_[2];  // allocated by the first copy
};

}  // namespace tern::weights
