/// The accelerated twins of batched.hpp, on the terms of cuda.hpp.
#pragma once
#include "ops/batched.hpp"

namespace tern::ops::cuda {

// by strided batches of cuBLASLt (linear.cpp)
void batched_product(const Context&, double alpha, Factor<bf16> a, Factor<bf16> b, double beta,
                     Tensor3<const bf16> c, Tensor3<bf16> d);

}  // namespace tern::ops::cuda
