/// Asynchronous host-to-device copies: each micro-batch of a step has its own page-locked buffer, so
/// a copy may be under way while the next one is written.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "memory/arena.hpp"
#include "objective/objective.hpp"

namespace tern::objective {

template <class V>
class Staging {
  using Pinned = Kokkos::View<V**, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;

 public:
  /// For up to `n` values per micro-batch.
  Staging(const std::string& name, const Shape& shape, std::size_t n, Arena& arena) {
    for (std::size_t i = 0; i < shape.in_flight; ++i)
      device_.push_back(arena.vector<V>(name, Term::data, n));
    if (!arena.measuring()) pinned_ = Pinned(name, shape.slots, n);
  }

  /// The values on the device, valid for the next in_flight - 1 slots.
  Vector<const V> copy(const Device& space, const std::vector<V>& values, std::size_t slot) {
    const std::size_t n = values.size();
    TERN_REQUIRE(n <= pinned_.extent(1) && slot < pinned_.extent(0), "{} values for {}, slot {}", n,
                 pinned_.extent(1), slot);
    const Vector<V> to(device_[slot % device_.size()].data(), n);
    if (n == 0) return to;
    std::copy(values.begin(), values.end(), &pinned_(slot, 0));
    Kokkos::deep_copy(
        space, to,
        Kokkos::View<const V*, Kokkos::SharedHostPinnedSpace, Unmanaged>(&pinned_(slot, 0), n));
    return to;
  }

 private:
  std::vector<Vector<V>> device_;  // one per micro-batch in flight
  Pinned pinned_;
};

}  // namespace tern::objective
