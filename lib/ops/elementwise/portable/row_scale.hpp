/// Scale of a row that is rounded to E4M3.
#pragma once
#include "base/fp8.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops::portable::detail {

/// e4m3_scale_in<T> of the largest magnitude of n numbers, on all lanes; NaN if one is not finite.
template <class T>
KOKKOS_INLINE_FUNCTION float row_scale(const Team& team, int n, const T* values) {
  return e4m3_scale_in<T>(row_max<float>(team, n, [&](const int i) {
    const float value = Kokkos::abs(static_cast<float>(values[i]));
    return value - value == 0 ? value : Kokkos::Experimental::infinity_v<float>;
  }));
}

}  // namespace tern::ops::portable::detail
