/// SIMD pack: one vector register on the host, one number per GPU thread. Tile kernels are written
/// in packs, so the same source fills the host's vector units without relying on
/// auto-vectorization.
#pragma once
#include <Kokkos_Core.hpp>

#include "base/types.hpp"

namespace tern::ops::portable::attention {

#if defined(__GNUC__) && !defined(__device__) && !defined(SYCL_LANGUAGE_VERSION)
#define TERN_VECTOR_PACKS  // device compilers know no vector types
#if defined(__AVX512F__)
constexpr int pack_bytes = 64;
#elif defined(__AVX__)
constexpr int pack_bytes = 32;
#else
constexpr int pack_bytes = 16;
#endif
template <class A>
struct PackOf {
  typedef A Type __attribute__((vector_size(pack_bytes)));
};
template <class A>
using Pack = typename PackOf<A>::Type;
#else
template <class A>
using Pack = A;
#endif

/// Numbers per pack.
template <class A>
constexpr int pack_lanes = static_cast<int>(sizeof(Pack<A>) / sizeof(A));

template <class A>
KOKKOS_INLINE_FUNCTION Pack<A> load_pack(const A* from) {
  Pack<A> value;
  memcpy(&value, from, sizeof value);
  return value;
}
template <class A>
KOKKOS_INLINE_FUNCTION void store_pack(A* to, Pack<A> value) {
  memcpy(to, &value, sizeof value);
}
template <class A>
KOKKOS_INLINE_FUNCTION Pack<A> splat(A value) {
  return Pack<A>{} + value;
}
template <class P>
KOKKOS_INLINE_FUNCTION P max_pack(P a, P b) {
  return a > b ? a : b;
}

/// exp of every lane; exactly 0 at -infinity. float on the host: reduction by n ln 2 and a
/// polynomial of degree 6, relative error below 3e-7 (2 ulp); results below 2^-126 are 0.
template <class A>
KOKKOS_INLINE_FUNCTION Pack<A> exp_pack(Pack<A> x) {
  if constexpr (pack_lanes<A> == 1) {
    return Kokkos::exp(x);
  } else if constexpr (sizeof(A) == 8) {
    for (int i = 0; i < pack_lanes<A>; ++i) x[i] = std::exp(x[i]);
    return x;
  }
#if defined(TERN_VECTOR_PACKS)
  else {
    typedef std::int32_t Bits __attribute__((vector_size(sizeof(Pack<A>))));
    using P = Pack<A>;
    const P low = splat<A>(-87.33654f), high = splat<A>(88.37f);
    const P clamped = x < low ? low : (x > high ? high : x);
    const P magic = splat<A>(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
    const P shifted = clamped * 1.44269504f + magic;
    const P n = shifted - magic;
    P r = clamped - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    P y = r * 1.9875691500e-4f + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * (r * r) + r + 1.0f;
    const Bits power = ((Bits)shifted << 23) + (127 << 23);  // the magic's upper bits shift out
    return x < low ? P{} : y * (P)power;
  }
#endif
}

}  // namespace tern::ops::portable::attention
