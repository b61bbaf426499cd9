/// The accelerated twins of ops/fp8.hpp for bf16 storage: cuBLASLt's 8-bit products, whose operands
/// are written by kernels of our own. Context::library must be set. Misaligned views go to
/// portable::.
#pragma once
#include "ops/fp8.hpp"

namespace tern::ops::cuda {

/// Whether the current device multiplies 8-bit floats.
bool fp8_available();

void fp8_linear_forward(const Context&, const Fp8Workspace<bf16>&, Matrix<const bf16> x,
                        Matrix<const bf16> w, Vector<const bf16> bias, Matrix<bf16> y, Write);
void fp8_linear_backward(const Context&, const Fp8Workspace<bf16>&, Matrix<const bf16> dy,
                         Matrix<const bf16> x, Matrix<const bf16> w, Matrix<bf16> dx,
                         Matrix<float> dw, Vector<float> dbias);

}  // namespace tern::ops::cuda
