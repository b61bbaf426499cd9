/// Paged attention, one team per row and head, with an online softmax in rounds of keys that begin
/// at multiples of `step` in the sequence: sums do not depend on prefill chunks or pages.
#include "base/error.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/head_norm.hpp"
#include "ops/decode/paged_cache.hpp"
#include "ops/elementwise/portable/row_scale.hpp"

namespace tern::ops {
using namespace portable;
namespace {
using detail::Team;

/// Keys or values in T.
template <class T>
struct Plain {
  const T* numbers;
  KOKKOS_INLINE_FUNCTION T at(std::size_t place, int e, int size) const {
    return numbers[place * size + e];
  }
};
/// In E4M3.
struct Coded {
  const std::uint8_t* codes;
  const float* undo;
  KOKKOS_INLINE_FUNCTION float at(std::size_t place, int e, int size) const {
    return decode<E4M3>(codes[place * size + cached_at(e, size)]) * undo[place];
  }
};

template <class T, class Pages>
struct PagedAttentionKernel {
  using A = Accumulate<T>;
  static constexpr int step = 64;  // keys per round

  Vector<const std::int32_t> tables, positions, table_of;
  A scale;
  Matrix<const T> qkv;
  Pages keys, values;
  Matrix<T> out;
  int heads, kv_heads, size, page_tokens;

  static std::size_t scratch_bytes(int size) { return (size + step) * sizeof(A) + 64; }

  KOKKOS_INLINE_FUNCTION std::size_t place(const std::int32_t* pages, int key, int kv) const {
    const auto page = static_cast<std::size_t>(pages[key / page_tokens]);
    return (page * kv_heads + kv) * page_tokens + key % page_tokens;
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
        const std::size_t key = place(pages, first + j, kv);
        const A score = scale * detail::row_sum<A>(team, size, [&](int e) {
                          return A(query[e]) * A(keys.at(key, e, size));
                        });
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
      const std::size_t value = place(pages, first + j, kv);
      const A weight = weights[j];
      detail::columns(team, size, [&](int e) { sum[e] += weight * A(values.at(value, e, size)); });
    }
  }
};

template <class T>
void require_shapes(const PagedRows& rows, std::size_t N, std::size_t qkv_width, std::size_t H,
                    const PagedCache<T>& cache) {
  const std::size_t K = cache.heads(), P = cache.page_tokens, E = cache.head_size();
  TERN_REQUIRE(P > 0 && (P & (P - 1)) == 0 && E > 0 && K > 0 && H % K == 0,
               "pages of {} tokens, {} numbers a head, {} heads over {}", P, E, H, K);
  TERN_REQUIRE(qkv_width == (H + 2 * K) * E, "rows of {} for {} + 2 x {} heads of {}", qkv_width, H,
               K, E);
  TERN_REQUIRE(
      rows.positions.extent(0) == N && rows.table_of.extent(0) == N && rows.places.extent(0) == N,
      "{} rows, {} positions, {} tables, {} places", N, rows.positions.extent(0),
      rows.table_of.extent(0), rows.places.extent(0));
}

int size_of(std::size_t n) { return static_cast<int>(n); }

template <class T, class Pages>
void attend(const Context& context, const PagedRows& rows, double scale, Matrix<const T> qkv,
            const PagedCache<T>& cache, Matrix<T> out, const Pages& keys, const Pages& values) {
  using Attention = PagedAttentionKernel<T, Pages>;
  const std::size_t E = cache.head_size(), H = out.extent(1) / E;
  const Attention attention{rows.tables,   rows.positions,
                            rows.table_of, static_cast<Accumulate<T>>(scale),
                            qkv,           keys,
                            values,        out,
                            size_of(H),    size_of(cache.heads()),
                            size_of(E),    size_of(cache.page_tokens)};
  Kokkos::TeamPolicy<Device> policy(context.space, size_of(out.extent(0) * H), 1,
                                    detail::on_host ? 1 : 32);
  policy.set_scratch_size(0, Kokkos::PerTeam(Attention::scratch_bytes(size_of(E))));
  Kokkos::parallel_for("tern::paged_attention", policy, attention);
}

/// Columns [first, ...) of the rows, as many as the heads of `pages` have.
template <class T>
void store_plain(const Context& context, const PagedRows& rows, Matrix<const T> qkv,
                 std::size_t first, Tensor3<T> pages, std::size_t P) {
  const Vector<const std::int32_t> places = rows.places;
  const std::size_t E = pages.extent(2) / P;
  const int width = size_of(pages.extent(1) * E);
  detail::for_each_row(
      context, "tern::paged_store", qkv.extent(0), KOKKOS_LAMBDA(const Team& team, const int row) {
        const auto place = static_cast<std::size_t>(places(row));
        const T* from = &qkv(row, first);
        T* to = &pages(place / P, 0, place % P * E);
        detail::columns(team, width, [&](int i) { to[i / E * P * E + i % E] = from[i]; });
      });
}

template <class T>
void store_coded(const Context& context, const PagedRows& rows, Matrix<const T> qkv,
                 std::size_t first, const CodedPages& pages, std::size_t P) {
  const Vector<const std::int32_t> places = rows.places;
  const Tensor3<std::uint8_t> codes = pages.codes;
  const Tensor3<float> undo = pages.undo;
  const std::size_t K = codes.extent(1), E = codes.extent(2) / P;
  const int size = size_of(E);
  detail::for_each_row(
      context, "tern::paged_store, fp8", qkv.extent(0) * K,
      KOKKOS_LAMBDA(const Team& team, const int at) {
        const std::size_t row = at / K, kv = at % K;
        const auto place = static_cast<std::size_t>(places(row));
        const std::size_t page = place / P, token = place % P;
        const T* from = &qkv(row, first + kv * E);
        std::uint8_t* to = &codes(page, kv, token * E);
        const float scale = detail::row_scale(team, size, from);
        detail::columns(team, size, [&](int e) {
          to[cached_at(e, E)] = encode<E4M3>(round_to<E4M3>(static_cast<float>(from[e]) * scale));
        });
        undo(page, kv, token) = undo_scale(scale);
      });
}

}  // namespace

template <class T>
void PagedStore<T>::check() const {
  require_shapes(rows, qkv.extent(0), qkv.extent(1), heads, cache);
  const std::size_t E = cache.head_size();
  TERN_REQUIRE((stage.q_gain.size() == 0 || stage.q_gain.size() == E) &&
                   stage.k_gain.size() == stage.q_gain.size(),
               "gains of {} and {} for heads of {}", stage.q_gain.size(), stage.k_gain.size(), E);
}

template <class T>
void PagedStore<T>::portable(const Context& context, const PagedStore& call) {
  const std::size_t E = call.cache.head_size();
  const Context plain = context.portable();
  const std::size_t N = call.qkv.extent(0), K = call.cache.heads(), P = call.cache.page_tokens;
  const auto part = [&](std::size_t first, std::size_t count) {
    return heads_of(call.qkv, first * E, 1, N, count, E);
  };
  const Positions positions{0, call.rows.positions};
  const auto norm = [&](const Heads<T>& x, Vector<const T> gain) {
    run(plain, HeadNormForward<T>{.x = x,
                                  .gain = gain,
                                  .eps = call.stage.eps,
                                  .table = call.stage.table,
                                  .positions = positions,
                                  .y = x});
  };
  if (call.stage.q_gain.size() > 0)
    norm(part(0, call.heads), call.stage.q_gain), norm(part(call.heads, K), call.stage.k_gain);
  else if (call.stage.table.extent(0) > 0)
    run(plain, Rotary<T>{.x = part(0, call.heads + K),
                         .table = call.stage.table,
                         .positions = positions,
                         .direction = Direction::forward});
  if (call.cache.coded()) {
    store_coded<T>(context, call.rows, call.qkv, call.heads * E, call.cache.coded_keys, P);
    store_coded<T>(context, call.rows, call.qkv, (call.heads + K) * E, call.cache.coded_values, P);
  } else {
    store_plain<T>(context, call.rows, call.qkv, call.heads * E, call.cache.keys, P);
    store_plain<T>(context, call.rows, call.qkv, (call.heads + K) * E, call.cache.values, P);
  }
}

template <class T>
void PagedAttention<T>::check() const {
  const std::size_t E = cache.head_size();
  require_shapes(rows, out.extent(0), qkv.extent(1), out.extent(1) / E, cache);
  TERN_REQUIRE(qkv.extent(0) == out.extent(0), "{} rows of q, {} of results", qkv.extent(0),
               out.extent(0));
}

template <class T>
void PagedAttention<T>::portable(const Context& context, const PagedAttention& call) {
  if (call.out.extent(0) == 0) return;
  if (call.cache.coded())
    attend<T>(context, call.rows, call.scale, call.qkv, call.cache, call.out,
              Coded{call.cache.coded_keys.codes.data(), call.cache.coded_keys.undo.data()},
              Coded{call.cache.coded_values.codes.data(), call.cache.coded_values.undo.data()});
  else
    attend<T>(context, call.rows, call.scale, call.qkv, call.cache, call.out,
              Plain<T>{call.cache.keys.data()}, Plain<T>{call.cache.values.data()});
  if (call.coded.wanted()) run(context, Fp8RoundRows<T>{.x = call.out, .to = call.coded});
}

template <class T>
void PagedNumbers<T>::check() const {
  TERN_REQUIRE(to.size() == pages.codes.size() && to.extent(0) == pages.undo.size(),
               "{} numbers for {} codes", to.size(), pages.codes.size());
}

template <class T>
void PagedNumbers<T>::portable(const Context& context, const PagedNumbers& call) {
  const Coded coded{call.pages.codes.data(), call.pages.undo.data()};
  const int size = size_of(call.to.extent(1));
  detail::for_each_row(
      context, "tern::paged_numbers", call.to.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        detail::columns(team, size, [&](int e) { call.to(row, e) = T(coded.at(row, e, size)); });
      });
}

std::size_t paged_partials(std::size_t splits, std::size_t heads, std::size_t head_size) {
  if constexpr (!native_build) return 0;
  return splits * heads * (head_size + 2);
}

TERN_INSTANTIATE_PORTABLE(PagedStore)
TERN_INSTANTIATE_PORTABLE(PagedAttention)
TERN_INSTANTIATE_PORTABLE(PagedNumbers)

}  // namespace tern::ops
