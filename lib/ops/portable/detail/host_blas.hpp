/// OpenBLAS on processors that are newer than it.
#pragma once

namespace tern::ops::portable::detail {

/// OpenBLAS picks its kernels by the processor's model number; one that it does not know gets those
/// of the Pentium 4 ("Prescott"), ten times too slow on one with AVX-512. In that case, and unless
/// the user has set OPENBLAS_CORETYPE, this makes it choose again by what the processor can do. Any
/// other BLAS is left alone. To be called before the first product; returns true, to initialise a
/// static.
bool choose_host_blas_kernels();

}  // namespace tern::ops::portable::detail
