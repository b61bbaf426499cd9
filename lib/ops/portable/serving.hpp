/// The portable operations of serving.hpp, on the same terms.
#pragma once
#include "ops/serving.hpp"

namespace tern::ops::portable {

template <class T>
void paged_store(const Context&, const PagedRows&, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>&, const PagedCache<T>& cache);
template <class T>
void paged_attention(const Context&, const PagedRows&, double scale, Matrix<const T> qkv,
                     const PagedCache<T>& cache, Matrix<T> out);
template <class T>
void sample_rows(const Context&, const Sampling&, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<const std::int32_t> ids, Vector<const std::int32_t> numbers,
                 Vector<std::int32_t> token);

}  // namespace tern::ops::portable
