/// Largest magnitude of a matrix, from which fp8 products scale it (fp8.hpp). Operations that write
/// a matrix can find it on the way.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

/// (1): the largest |x| as the bits of a float, which order as the numbers do, with infinity and NaN
/// above all.
using Magnitude = Vector<std::uint32_t>;

template <class T>
void largest_magnitude(const Context&, Matrix<const T> x, Magnitude magnitude);

Twin<&largest_magnitude<bf16>> native_largest_magnitude;
template <>
inline constexpr auto twin<&largest_magnitude<bf16>> = in_cuda("tern::largest_magnitude",
                                                               native_largest_magnitude);

}  // namespace tern::ops
