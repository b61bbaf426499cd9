/// Elementary functions that compilers vectorize in simple loops: no branch, no table, no call. On
/// the device and in double they are the library's.
#pragma once
#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstring>

namespace tern::ops::portable {

/// e^x in float on the host: Cody-Waite reduction by ln 2 in two parts, a minimax polynomial of
/// degree six on [-ln2/2, ln2/2], and an addition to the exponent bits. At most 1 ulp off for x in
/// [-87.3, 88.72]; below that 0, above it infinity; NaN stays NaN. Safe under any floating-point
/// compiler flags except those that drop infinities.
KOKKOS_INLINE_FUNCTION float exp_polynomial(float x) {
  const float clamped = x < -87.3f ? -87.3f : (x > 88.72f ? 88.72f : x);
  const float n = rintf(clamped * 1.44269504088896341f);
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 0.001381446706f;
  p = p * r + 0.008368780411f;
  p = p * r + 0.04166839421f;
  p = p * r + 0.1666652011f;
  p = p * r + 0.4999999341f;
  p = (p * r) * r + r + 1.0f;
  std::int32_t bits;
  memcpy(&bits, &p, sizeof bits);
  // The select keeps NaN, which no integer represents, out of the conversion.
  bits += static_cast<std::int32_t>(n == n ? n : 0.0f) * (1 << 23);
  memcpy(&p, &bits, sizeof p);
  return x < -87.3f ? 0.0f : (x > 88.72f ? HUGE_VALF : p);
}

KOKKOS_INLINE_FUNCTION float exponential(float x) {
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp(x);))
  KOKKOS_IF_ON_HOST((return exp_polynomial(x);))
}
KOKKOS_INLINE_FUNCTION double exponential(double x) { return Kokkos::exp(x); }

/// 1 / (1 + e^-x).
template <class A>
KOKKOS_INLINE_FUNCTION A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

template <class A>
struct Logistic {
  A value, slope;
};
/// sigmoid(x) and its derivative, which keeps its relative precision where the sigmoid is close
/// to 1.
template <class A>
KOKKOS_INLINE_FUNCTION Logistic<A> logistic(A x) {
  const A e = exponential(x < A(0) ? x : -x), q = A(1) / (A(1) + e);
  return {x < A(0) ? e * q : q, e * q * q};
}

}  // namespace tern::ops::portable
