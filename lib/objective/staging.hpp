/// Asynchronous host-to-device copies: each slot has its own page-locked buffer, so a copy may be
/// in flight while the next micro-batch is written.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "memory/arena.hpp"

namespace tern::objective {

template <class V>
class Staging {
  using Pinned = Kokkos::View<V**, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;

 public:
  Staging(const std::string& name, std::size_t slots, std::size_t n, Arena& arena)
      : device_(arena.vector<V>(name, Term::data, n)) {
    if (!arena.measuring()) pinned_ = Pinned(name, slots, n);
  }

  /// Copies at most n values; the view has as many as were given.
  Vector<const V> copy(const Device& space, const std::vector<V>& values, std::size_t slot) {
    const std::size_t n = values.size();
    TERN_REQUIRE(n <= device_.extent(0) && slot < pinned_.extent(0), "{} values for {}, slot {}", n,
                 device_.extent(0), slot);
    const Vector<V> to(device_.data(), n);
    if (n == 0) return to;
    std::copy(values.begin(), values.end(), &pinned_(slot, 0));
    Kokkos::deep_copy(
        space, to,
        Kokkos::View<const V*, Kokkos::SharedHostPinnedSpace, Unmanaged>(&pinned_(slot, 0), n));
    return to;
  }

 private:
  Vector<V> device_;
  Pinned pinned_;
};

}  // namespace tern::objective
