/// Attention over pages, one team a row and head, with an online softmax in rounds of keys that
/// begin at multiples of `step` in the sequence: the same sums however a sequence is cut into rows
/// of passes and into pages.
#include "base/error.hpp"
#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"
#include "ops/portable/serving.hpp"

namespace tern::ops::portable {
namespace {
using detail::Team;

template <class T>
struct PagedAttention {
  using A = Accumulate<T>;
  static constexpr int step = 64;  // keys to a round

  Vector<const std::int32_t> tables, positions, table_of;
  A scale;
  Matrix<const T> qkv;
  Tensor3<const T> keys, values;
  Matrix<T> out;
  int heads, kv_heads, size, page_tokens;

  static std::size_t scratch_bytes(int size) { return (size + step) * sizeof(A) + 64; }

  KOKKOS_INLINE_FUNCTION std::size_t place(const std::int32_t* pages, int key, int kv) const {
    const auto page = static_cast<std::size_t>(pages[key / page_tokens]);
    return ((page * kv_heads + kv) * page_tokens + key % page_tokens) * size;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int row = team.league_rank() / heads, h = team.league_rank() % heads;
    const int kv = h / (heads / kv_heads), end = positions(row) + 1;
    const std::int32_t* pages = &tables(table_of(row));
    const T* query = &qkv(row, h * size);
    A* sum = static_cast<A*>(team.team_scratch(0).get_shmem_aligned((size + step) * sizeof(A), 64));
    A* weights = sum + size;
    detail::columns(team, size, [&](int e) { sum[e] = 0; });
    A largest = -Kokkos::Experimental::infinity_v<A>, total = 0;
    for (int first = 0; first < end; first += step) {
      const int count = end - first < step ? end - first : step;
      for (int j = 0; j < count; ++j) {
        const T* key = keys.data() + place(pages, first + j, kv);
        const A score =
            scale * detail::row_sum<A>(team, size, [&](int e) { return A(query[e]) * A(key[e]); });
        Kokkos::single(Kokkos::PerTeam(team), [&] { weights[j] = score; });
      }
      team.team_barrier();
      const A now =
          Kokkos::max(largest, detail::row_max<A>(team, count, [&](int j) { return weights[j]; }));
      const A factor = Kokkos::exp(largest - now);
      team.team_barrier();
      detail::columns(team, count, [&](int j) { weights[j] = Kokkos::exp(weights[j] - now); });
      team.team_barrier();
      total = total * factor + detail::row_sum<A>(team, count, [&](int j) { return weights[j]; });
      largest = now;
      detail::columns(team, size, [&](int e) { sum[e] *= factor; });
      add_values(team, pages, first, count, kv, weights, sum);
      team.team_barrier();
    }
    detail::columns(team, size, [&](int e) { out(row, h * size + e) = T(sum[e] / total); });
  }

  KOKKOS_FUNCTION void add_values(const Team& team, const std::int32_t* pages, int first, int count,
                                  int kv, const A* weights, A* sum) const {
    for (int j = 0; j < count; ++j) {
      const T* value = values.data() + place(pages, first + j, kv);
      const A weight = weights[j];
      detail::columns(team, size, [&](int e) { sum[e] += weight * A(value[e]); });
    }
  }
};

int size_of(std::size_t n) { return static_cast<int>(n); }

}  // namespace

template <class T>
void paged_store(const Context& context, const PagedRows& rows, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>& stage, const PagedCache<T>& cache) {
  const std::size_t N = qkv.extent(0), K = cache.keys.extent(1), P = cache.page_tokens;
  const std::size_t E = cache.keys.extent(2) / P, width = K * E;
  const auto part = [&](std::size_t first, std::size_t count) {
    return heads_of(qkv, first * E, 1, N, count, E);
  };
  if (stage.q_gain.size() > 0) {
    portable::head_norm_forward<T>(context, part(0, heads), stage.q_gain, stage.eps, {}, {});
    portable::head_norm_forward<T>(context, part(heads, K), stage.k_gain, stage.eps, {}, {});
  }
  if (stage.table.extent(0) > 0)
    portable::rotary<T>(context, part(0, heads + K), stage.table, {0, rows.positions},
                        Direction::forward);
  const Vector<const std::int32_t> places = rows.places;
  const Tensor3<T> keys = cache.keys, values = cache.values;
  const int numbers = size_of(width);
  detail::for_each_row(
      context, "paged_store", N, KOKKOS_LAMBDA(const Team& team, const int row) {
        const auto page = static_cast<std::size_t>(places(row)) / P;
        const std::size_t token = static_cast<std::size_t>(places(row)) % P;
        const T* from = &qkv(row, heads * E);
        T *key = &keys(page, 0, token * E), *value = &values(page, 0, token * E);
        detail::columns(team, numbers, [&](int i) {
          const std::size_t at = i / E * P * E + i % E;
          key[at] = from[i];
          value[at] = from[width + i];
        });
      });
}

template <class T>
void paged_attention(const Context& context, const PagedRows& rows, double scale,
                     Matrix<const T> qkv, const PagedCache<T>& cache, Matrix<T> out) {
  using Attention = PagedAttention<T>;
  const std::size_t K = cache.keys.extent(1), P = cache.page_tokens;
  const std::size_t E = cache.keys.extent(2) / P, H = out.extent(1) / E, N = out.extent(0);
  if (N == 0) return;
  const Attention attention{
      rows.tables, rows.positions, rows.table_of, static_cast<Accumulate<T>>(scale),
      qkv,         cache.keys,     cache.values,  out,
      size_of(H),  size_of(K),     size_of(E),    size_of(P)};
  Kokkos::TeamPolicy<Device> policy(context.space, size_of(N * H), 1, detail::on_host ? 1 : 32);
  policy.set_scratch_size(0, Kokkos::PerTeam(Attention::scratch_bytes(size_of(E))));
  Kokkos::parallel_for("paged_attention", policy, attention);
}

#define INSTANTIATE(T)                                                                        \
  template void paged_store<T>(const Context&, const PagedRows&, Matrix<T>, std::size_t,      \
                               const HeadStage<T>&, const PagedCache<T>&);                    \
  template void paged_attention<T>(const Context&, const PagedRows&, double, Matrix<const T>, \
                                   const PagedCache<T>&, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops::portable
