/// The accelerated twins of experts.hpp, on the terms of cuda.hpp: grouped products by our own
/// tensor-core kernels.
#pragma once
#include "ops/experts.hpp"

namespace tern::ops::cuda {

void route(const Context&, bool renormalise, Matrix<const bf16> logits, Matrix<float> probabilities,
           Matrix<float> weights, Matrix<std::int32_t> experts);
void sort_pairs(const Context&, const Routing&);

// (grouped_product.cpp)
void grouped_forward(const Context&, Vector<const std::int32_t> offsets, const Gathered<bf16>& x,
                     const Grouped<const bf16>& w, Matrix<bf16> y);
void grouped_backward_input(const Context&, Vector<const std::int32_t> offsets,
                            const Gathered<bf16>& dy, const Grouped<const bf16>& w,
                            Matrix<bf16> dx);
void grouped_backward_weight(const Context&, Vector<const std::int32_t> offsets,
                             const Gathered<bf16>& dy, const Gathered<bf16>& x,
                             const Grouped<float>& dw);

void weighted_swiglu(const Context&, Matrix<const bf16> x, Matrix<const float> weights,
                     Vector<const std::int32_t> pairs, Matrix<bf16> y);
void weighted_swiglu_backward(const Context&, Matrix<const bf16> x, Matrix<const float> weights,
                              Vector<const std::int32_t> pairs, Matrix<const bf16> dy,
                              Matrix<bf16> dx, Matrix<float> dweights);
void combine(const Context&, Matrix<const bf16> values, Matrix<const std::int32_t> rows,
             Matrix<const bf16> added, Matrix<bf16> to);

}  // namespace tern::ops::cuda
