/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/decode/paged_cache.hpp"
#include "ops/decode/sampling.hpp"

namespace tern::ops {

template <class T>
void paged_store(const Context& context, const PagedRows& rows, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>& stage, const PagedCache<T>& cache) {
  run(context, PagedStore<T>{rows, qkv, heads, stage, cache});
}
template <class T>
void paged_attention(const Context& context, const PagedRows& rows, double scale,
                     Matrix<const T> qkv, const PagedCache<T>& cache, Vector<Accumulate<T>> partial,
                     Matrix<T> out, const Fp8Rows& coded = {}) {
  run(context, PagedAttention<T>{rows, scale, qkv, cache, partial, out, coded});
}
template <class T>
void paged_numbers(const Context& context, const CodedPages& pages, Matrix<T> to) {
  run(context, PagedNumbers<T>{pages, to});
}
template <class T>
void sample(const Context& context, const Sampling& options, Matrix<const T> logits,
            std::size_t vocabulary, Vector<const std::int32_t> request, int position,
            Vector<std::int32_t> token) {
  run(context, Sample<T>{options, logits, vocabulary, request, position, token});
}
template <class T>
void sample_rows(const Context& context, const Sampling& options, Matrix<const T> logits,
                 std::size_t vocabulary, Vector<const std::int32_t> ids,
                 Vector<const std::int32_t> numbers, Vector<std::int32_t> token) {
  run(context, SampleRows<T>{options, logits, vocabulary, ids, numbers, token});
}

}  // namespace tern::ops
