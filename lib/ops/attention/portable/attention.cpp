/// Attention forward, by tiles of queries with an online softmax (Dao et al. 2022; Milakov &
/// Gimelshein 2018). One team per (batch, head, tile of queries); queries lie along packs, so that
/// maxima and sums of the softmax never cross a register.
#include "ops/attention/attention.hpp"
#include "ops/attention/portable/detail/attention_rows.hpp"

namespace tern::ops {
using namespace portable;
namespace {
using namespace attention;

/// The running softmax of a tile's queries.
template <class A>
struct Softmax {
  A *largest, *total, *factor;  // (Own) each
};

/// Turns scores (keys, Own) into exp(score - largest) and updates largest and total; factor
/// rescales sums under the old maximum. A query that attends to nothing keeps largest = -inf,
/// total = 0.
template <int Own, class A>
KOKKOS_INLINE_FUNCTION void online_softmax(const Team& team, Softmax<A> state, A* scores, int keys,
                                           int stride) {
  constexpr int lanes = pack_lanes<A>;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Own / lanes), [&](int pack) {
    const int n = pack * lanes;
    const Pack<A> none = splat<A>(-Kokkos::Experimental::infinity_v<A>);
    const Pack<A> before = load_pack(state.largest + n);
    Pack<A> largest = before;
    for (int key = 0; key < keys; ++key)
      largest = max_pack(largest, load_pack(scores + key * stride + n));
    const Pack<A> shift = largest == none ? Pack<A>{} : largest;  // -inf - -inf would be NaN
    const Pack<A> factor = exp_pack<A>(before - shift);
    Pack<A> total = load_pack(state.total + n) * factor;
    for (int key = 0; key < keys; ++key) {
      const Pack<A> weight = exp_pack<A>(load_pack(scores + key * stride + n) - shift);
      total += weight;
      store_pack(scores + key * stride + n, weight);
    }
    store_pack(state.largest + n, largest);
    store_pack(state.total + n, total);
    store_pack(state.factor + n, factor);
  });
  team.team_barrier();
}

/// tile (rows, Own) *= factor (Own).
template <int Own, class A>
KOKKOS_INLINE_FUNCTION void scale_columns(const Team& team, A* tile, int rows, int stride,
                                          const A* factor) {
  constexpr int lanes = pack_lanes<A>;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * (Own / lanes)), [&](int i) {
    const int n = i % (Own / lanes) * lanes;
    A* at = tile + i / (Own / lanes) * stride + n;
    store_pack(at, load_pack(at) * load_pack(factor + n));
  });
  team.team_barrier();
}

template <class T, int Own>
struct Forward {
  using A = Accumulate<T>;
  Pattern pattern;
  A scale;
  Heads<const T> q, k, v;
  Heads<T> out;
  Matrix<A> lse;
  TileShape tile;
  int level;
  std::size_t bytes;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int queries = static_cast<int>(q.extent(1)), keys = static_cast<int>(k.extent(1));
    const int heads = static_cast<int>(q.extent(2)), size = static_cast<int>(q.extent(3));
    const int tiles = (queries + Own - 1) / Own;
    const int q0 = team.league_rank() % tiles * Own, bh = team.league_rank() / tiles;
    const int b = bh / heads, h = bh % heads;
    const int kv = h / (heads / static_cast<int>(k.extent(2)));
    const int q1 = q0 + Own < queries ? q0 + Own : queries;
    constexpr int stride = tile_stride(processor, Own);

    Scratch<A> scratch(team, level, bytes);
    A* own = scratch.take(size * stride);           // (E, Own) scaled queries
    A* sum = scratch.take(size * stride);           // (E, Own) weighted values
    A* scores = scratch.take(tile.other * stride);  // (other, Own)
    const Softmax<A> state{scratch.take(stride), scratch.take(stride), scratch.take(stride)};
    A* staged = scratch.take(tile.other * tile_stride(processor, size));

    load_own<Own>(team, head_rows(q, b, h, q0), q1 - q0, size, scale, own, stride);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Own), [&](int n) {
      state.largest[n] = -Kokkos::Experimental::infinity_v<A>;
      state.total[n] = 0;
      for (int e = 0; e < size; ++e) sum[e * stride + n] = 0;
    });
    team.team_barrier();

    for (int begin = 0; begin < keys; begin += tile.other) {
      const auto [k0, k1, seen] =
          seen_span(begin, Kokkos::min(begin + tile.other, keys), tile.other,
                    [&](int first, int last) { return pattern.tile(b, q0, q1, first, last); });
      if (seen == Tile::none) continue;
      const auto key_tile = stage_other<T, A>(team, head_rows(k, b, kv, k0), k1 - k0, size, staged);
      tile_product<Own>(team, k1 - k0, size, key_tile, own, scores, stride, Sum::fresh);
      if (seen == Tile::mixed) mask(team, scores, b, q0, q1, k0, k1);
      online_softmax<Own>(team, state, scores, k1 - k0, stride);
      scale_columns<Own>(team, sum, size, stride, state.factor);
      const auto value_tile =
          stage_other<T, A>(team, head_rows(v, b, kv, k0), k1 - k0, size, staged);
      tile_product<Own>(team, size, k1 - k0, transposed(value_tile), scores, sum, stride,
                        Sum::onto);
    }
    finish(team, state, sum, b, h, q0, q1 - q0);
  }

  KOKKOS_FUNCTION void mask(const Team& team, A* scores, int b, int q0, int q1, int k0,
                            int k1) const {
    constexpr int stride = tile_stride(processor, Own);
    const int width = q1 - q0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, k1 - k0), [&](int key) {
      for (int n = 0; n < width; ++n)
        if (!pattern.allowed(b, q0 + n, k0 + key))
          scores[key * stride + n] = -Kokkos::Experimental::infinity_v<A>;
    });
    team.team_barrier();
  }

  KOKKOS_FUNCTION void finish(const Team& team, const Softmax<A>& state, A* sum, int b, int h,
                              int q0, int rows) const {
    constexpr int stride = tile_stride(processor, Own);
    const int size = static_cast<int>(q.extent(3)), heads = static_cast<int>(q.extent(2));
    const Rows<T> to = head_rows(out, b, h, q0);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int n) {
      const A total = state.total[n];
      lse(b * heads + h, q0 + n) = state.largest[n] + Kokkos::log(total);
      const A factor = total > 0 ? A(1) / total : A(0);
      for (int e = 0; e < size; ++e)
        to.data[n * to.stride + e] = static_cast<T>(factor * sum[e * stride + n]);
    });
  }
};

}  // namespace

template <class T>
void AttentionForward<T>::check() const {
  require_shapes(pattern, q, k);
}

template <class T>
void AttentionForward<T>::portable(const Context& context, const AttentionForward& call) {
  using A = Accumulate<T>;
  const int size = static_cast<int>(call.q.extent(3)), queries = static_cast<int>(call.q.extent(1));
  if constexpr (processor == Processor::host) {
    if (queries <= few_queries && size <= max_head_size) {
      const int rows = static_cast<int>(call.q.extent(0) * call.q.extent(2)) * queries;
      Kokkos::parallel_for("tern::attention_rows",
                           Kokkos::RangePolicy<Device>(context.space, 0, rows),
                           RowForward<T>{call.pattern, static_cast<A>(call.scale), call.q, call.k,
                                         call.v, call.out, call.lse});
      return;
    }
  }
  const TileShape tile = tile_shape(processor, Pass::forward, queries, size, sizeof(A));
  const std::size_t bytes = scratch_bytes(processor, Pass::forward, tile, size, sizeof(A));
  const int level = scratch_level(processor, bytes);
  const int tiles = (queries + tile.own - 1) / tile.own;
  const int league = static_cast<int>(call.q.extent(0) * call.q.extent(2)) * tiles;
  if (league == 0) return;
  with_own_width(tile.own, [&](auto own) {
    launch_teams(context, "tern::attention_forward", league, level, bytes,
                 Forward<T, own.value>{call.pattern, static_cast<A>(call.scale), call.q, call.k,
                                       call.v, call.out, call.lse, tile, level, bytes});
  });
}

TERN_INSTANTIATE_PORTABLE(AttentionForward)

}  // namespace tern::ops
