/// The accelerated twins of serving.hpp for bf16 storage on NVIDIA GPUs, on the terms of cuda.hpp.
#pragma once
#include "ops/serving.hpp"

namespace tern::ops::cuda {

// paged_store.cpp
void paged_store(const Context&, const PagedRows&, Matrix<bf16> qkv, std::size_t heads,
                 const HeadStage<bf16>&, const PagedCache<bf16>& cache);

// paged_attention.cpp
void paged_attention(const Context&, const PagedRows&, double scale, Matrix<const bf16> qkv,
                     const PagedCache<bf16>& cache, Vector<float> partial, Matrix<bf16> out);

// sampling.cpp
void sample_rows(const Context&, const Sampling&, Matrix<const bf16> logits, std::size_t vocabulary,
                 Vector<const std::int32_t> ids, Vector<const std::int32_t> numbers,
                 Vector<std::int32_t> token);

}  // namespace tern::ops::cuda
