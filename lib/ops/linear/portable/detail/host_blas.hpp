/// OpenBLAS on processors newer than the library.
#pragma once

namespace tern::ops::portable::detail {

/// OpenBLAS chooses kernels by CPU model; an unknown model gets those of the Pentium 4
/// ("Prescott"), ten times slower where there is AVX-512. In that case, unless the user has set
/// OPENBLAS_CORETYPE, this makes it choose again by CPU features. Any other BLAS is left unchanged.
/// Call before the first product; returns true, to initialize a static.
bool choose_host_blas_kernels();

}  // namespace tern::ops::portable::detail
