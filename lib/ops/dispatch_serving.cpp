// The operations of serving.hpp: to their cuda:: twins where there are any, else portable.
#include "base/error.hpp"
#include "ops/cuda/serving.hpp"
#include "ops/detail/dispatch.hpp"
#include "ops/portable/serving.hpp"

namespace tern::ops {
namespace {

template <class T>
void require_shapes(const PagedRows& rows, std::size_t N, std::size_t qkv_width, std::size_t H,
                    const PagedCache<T>& cache) {
  const std::size_t K = cache.keys.extent(1), P = cache.page_tokens;
  TERN_REQUIRE(P > 0 && (P & (P - 1)) == 0 && cache.keys.extent(2) % P == 0 && K > 0 && H % K == 0,
               "pages of {} tokens, {} numbers a head, {} heads over {}", P, cache.keys.extent(2),
               H, K);
  const std::size_t E = cache.keys.extent(2) / P;
  TERN_REQUIRE(qkv_width == (H + 2 * K) * E, "rows of {} for {} + 2 x {} heads of {}", qkv_width, H,
               K, E);
  TERN_REQUIRE(
      rows.positions.extent(0) == N && rows.table_of.extent(0) == N && rows.places.extent(0) == N,
      "{} rows, {} positions, {} tables, {} places", N, rows.positions.extent(0),
      rows.table_of.extent(0), rows.places.extent(0));
}

}  // namespace

template <class T>
void paged_store(const Context& context, const PagedRows& rows, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>& stage, const PagedCache<T>& cache) {
  require_shapes(rows, qkv.extent(0), qkv.extent(1), heads, cache);
  const std::size_t E = cache.keys.extent(2) / cache.page_tokens;
  TERN_REQUIRE((stage.q_gain.size() == 0 || stage.q_gain.size() == E) &&
                   stage.k_gain.size() == stage.q_gain.size(),
               "gains of {} and {} for heads of {}", stage.q_gain.size(), stage.k_gain.size(), E);
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::paged_store(context, rows, qkv, heads, stage, cache);
  portable::paged_store<T>(context, rows, qkv, heads, stage, cache);
}

template <class T>
void paged_attention(const Context& context, const PagedRows& rows, double scale,
                     Matrix<const T> qkv, const PagedCache<T>& cache, Vector<Accumulate<T>> partial,
                     Matrix<T> out) {
  const std::size_t E = cache.keys.extent(2) / cache.page_tokens;
  require_shapes(rows, out.extent(0), qkv.extent(1), out.extent(1) / E, cache);
  TERN_REQUIRE(qkv.extent(0) == out.extent(0), "{} rows of q, {} of results", qkv.extent(0),
               out.extent(0));
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::paged_attention(context, rows, scale, qkv, cache, partial, out);
  portable::paged_attention<T>(context, rows, scale, qkv, cache, out);
}

std::size_t paged_partials(std::size_t splits, std::size_t heads, std::size_t head_size) {
  if constexpr (!detail::cuda_build) return 0;
  return splits * heads * (head_size + 2);
}

template <class T>
void sample_rows(const Context& context, const Sampling& options, Matrix<const T> logits,
                 std::size_t vocabulary, Vector<const std::int32_t> ids,
                 Vector<const std::int32_t> numbers, Vector<std::int32_t> token) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::sample_rows(context, options, logits, vocabulary, ids, numbers, token);
  portable::sample_rows<T>(context, options, logits, vocabulary, ids, numbers, token);
}

#define INSTANTIATE(T)                                                                        \
  template void paged_store<T>(const Context&, const PagedRows&, Matrix<T>, std::size_t,      \
                               const HeadStage<T>&, const PagedCache<T>&);                    \
  template void paged_attention<T>(const Context&, const PagedRows&, double, Matrix<const T>, \
                                   const PagedCache<T>&, Vector<Accumulate<T>>, Matrix<T>);   \
  template void sample_rows<T>(const Context&, const Sampling&, Matrix<const T>, std::size_t, \
                               Vector<const std::int32_t>, Vector<const std::int32_t>,        \
                               Vector<std::int32_t>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops
