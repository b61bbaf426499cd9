/// Attention backward (Dao et al. 2022, appendix B.4) in two passes that recompute the weights
/// p = exp(scale q k^T - lse): one team per tile of queries for dq, one per tile of keys for dk and
/// dv. Each result is summed by one team in a fixed order, so there are no atomics. Where the host
/// has enough heads for its threads, the second pass computes dq as well.
///   dv = p^T dout;  ds = p (dout v^T - delta), delta = rowsum(dout out);  dq = scale ds k,
///   dk = scale ds^T q.
#include "ops/attention/attention.hpp"
#include "ops/attention/portable/detail/attention_tiles.hpp"

namespace tern::ops {
using namespace portable;
namespace {
using namespace attention;

template <class A>
constexpr A infinity = Kokkos::Experimental::infinity_v<A>;

/// Inputs of both passes. lse and delta are (B*H, Tq).
template <class T>
struct Inputs {
  using A = Accumulate<T>;
  Pattern pattern;
  A scale;
  Heads<const T> q, k, v, out, dout;
  Matrix<const A> lse;
  Matrix<A> delta;
  TileShape tile;
  int level;
  std::size_t bytes;
};

/// A query that attends to nothing has lse = -inf; with +inf all its weights are exp(-inf) = 0.
template <class A>
KOKKOS_INLINE_FUNCTION A usable_lse(A lse) {
  return lse == -infinity<A> ? infinity<A> : lse;
}

template <class T, int Own>
struct BackwardQuery {
  using A = Accumulate<T>;
  static constexpr int stride = tile_stride(processor, Own);
  Inputs<T> in;
  Heads<T> dq;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int queries = static_cast<int>(in.q.extent(1)), keys = static_cast<int>(in.k.extent(1));
    const int heads = static_cast<int>(in.q.extent(2)), size = static_cast<int>(in.q.extent(3));
    const int tiles = (queries + Own - 1) / Own;
    const int q0 = team.league_rank() % tiles * Own, bh = team.league_rank() / tiles;
    const int b = bh / heads, h = bh % heads;
    const int kv = h / (heads / static_cast<int>(in.k.extent(2)));
    const int q1 = q0 + Own < queries ? q0 + Own : queries;

    Scratch<A> scratch(team, in.level, in.bytes);
    A* q = scratch.take(size * stride);                 // (E, Own), scaled
    A* dout = scratch.take(size * stride);              // (E, Own)
    A* sum = scratch.take(size * stride);               // (E, Own), becomes dq
    A* weights = scratch.take(in.tile.other * stride);  // (other, Own)
    A* dweights = scratch.take(in.tile.other * stride);
    A* lse = scratch.take(stride);
    A* delta = scratch.take(stride);
    A* staged = scratch.take(in.tile.other * tile_stride(processor, size));

    load_own<Own>(team, head_rows(in.q, b, h, q0), q1 - q0, size, in.scale, q, stride);
    load_own<Own>(team, head_rows(in.dout, b, h, q0), q1 - q0, size, A(1), dout, stride);
    start(team, b, h, q0, q1 - q0, lse, delta, sum);

    for (int begin = 0; begin < keys; begin += in.tile.other) {
      const auto [k0, k1, seen] =
          seen_span(begin, Kokkos::min(begin + in.tile.other, keys), in.tile.other,
                    [&](int first, int last) { return in.pattern.tile(b, q0, q1, first, last); });
      if (seen == Tile::none) continue;
      const auto value = stage_other<T, A>(team, head_rows(in.v, b, kv, k0), k1 - k0, size, staged);
      tile_product<Own>(team, k1 - k0, size, value, dout, dweights, stride, Sum::fresh);
      const auto key = stage_other<T, A>(team, head_rows(in.k, b, kv, k0), k1 - k0, size, staged);
      tile_product<Own>(team, k1 - k0, size, key, q, weights, stride, Sum::fresh);
      if (seen == Tile::mixed) mask(team, weights, b, q0, q1, k0, k1);
      score_gradient(team, k1 - k0, weights, dweights, lse, delta);
      tile_product<Own>(team, size, k1 - k0, transposed(key), dweights, sum, stride, Sum::onto);
    }
    store_own(team, sum, stride, in.scale, head_rows(dq, b, h, q0), q1 - q0, size);
  }

  /// lse and delta of the tile's queries; delta is kept for the other pass.
  KOKKOS_FUNCTION void start(const Team& team, int b, int h, int q0, int rows, A* lse, A* delta,
                             A* sum) const {
    const int size = static_cast<int>(in.q.extent(3)),
              bh = b * static_cast<int>(in.q.extent(2)) + h;
    const auto dout = head_rows(in.dout, b, h, q0), out = head_rows(in.out, b, h, q0);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Own), [&](int n) {
      lse[n] = infinity<A>;
      delta[n] = 0;
      if (n < rows) {
        lse[n] = usable_lse(in.lse(bh, q0 + n));
        delta[n] = row_dot(dout.data + n * dout.stride, out.data + n * out.stride, size);
        in.delta(bh, q0 + n) = delta[n];
      }
      for (int e = 0; e < size; ++e) sum[e * stride + n] = 0;
    });
    team.team_barrier();
  }

  KOKKOS_FUNCTION void mask(const Team& team, A* scores, int b, int q0, int q1, int k0,
                            int k1) const {
    const int width = q1 - q0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, k1 - k0), [&](int key) {
      for (int n = 0; n < width; ++n)
        if (!in.pattern.allowed(b, q0 + n, k0 + key)) scores[key * stride + n] = -infinity<A>;
    });
    team.team_barrier();
  }

  /// dweights (keys, Own) becomes the gradient of the scores; weights hold the scores.
  KOKKOS_FUNCTION void score_gradient(const Team& team, int keys, const A* weights, A* dweights,
                                      const A* lse, const A* delta) const {
    constexpr int lanes = pack_lanes<A>, across = Own / lanes;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, keys * across), [&](int i) {
      const int n = i % across * lanes, at = i / across * stride + n;
      const Pack<A> weight = exp_pack<A>(load_pack(weights + at) - load_pack(lse + n));
      store_pack(dweights + at, weight * (load_pack(dweights + at) - load_pack(delta + n)));
    });
    team.team_barrier();
  }
};

/// dk and dv; on the host dq as well, where there are enough heads to keep all threads busy: then a
/// team takes all tiles of its key head, and the weights are recomputed once instead of twice.
template <class T, int Own>
struct BackwardKey {
  using A = Accumulate<T>;
  static constexpr int stride = tile_stride(processor, Own);
  Inputs<T> in;
  Heads<T> dk, dv;
  Heads<T> dq;  // empty unless this pass computes it

  struct Arrays {
    A *key, *value, *dkey, *dvalue;  // (E, Own); key scaled
    A *weights, *dweights;           // (other, Own)
    A* staged;                       // (other, E)
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int keys = static_cast<int>(in.k.extent(1)), size = static_cast<int>(in.q.extent(3));
    const int kv_heads = static_cast<int>(in.k.extent(2)), tiles = (keys + Own - 1) / Own;
    Scratch<A> scratch(team, in.level, in.bytes);
    Arrays a;
    a.key = scratch.take(size * stride);
    a.value = scratch.take(size * stride);
    a.dkey = scratch.take(size * stride);
    a.dvalue = scratch.take(size * stride);
    a.weights = scratch.take(in.tile.other * stride);
    a.dweights = scratch.take(in.tile.other * stride);
    a.staged = scratch.take(in.tile.other * tile_stride(processor, size));
    if (dq.data() == nullptr) {
      const int head = team.league_rank() / tiles;
      key_tile(team, a, head / kv_heads, head % kv_heads, team.league_rank() % tiles * Own);
      return;
    }
    const int b = team.league_rank() / kv_heads, kv = team.league_rank() % kv_heads;
    start_queries(team, b, kv);
    for (int tile = 0; tile < tiles; ++tile) key_tile(team, a, b, kv, tile * Own);
  }

  KOKKOS_FUNCTION int group() const {
    return static_cast<int>(in.q.extent(2)) / static_cast<int>(in.k.extent(2));
  }

  /// dq = 0, and delta, for the query heads of one key head.
  KOKKOS_FUNCTION void start_queries(const Team& team, int b, int kv) const {
    const int queries = static_cast<int>(in.q.extent(1)), size = static_cast<int>(in.q.extent(3));
    const int heads = static_cast<int>(in.q.extent(2));
    for (int h = kv * group(); h < (kv + 1) * group(); ++h) {
      const auto dout = head_rows(in.dout, b, h, 0), out = head_rows(in.out, b, h, 0);
      const auto gradient = head_rows(dq, b, h, 0);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, queries), [&](int i) {
        in.delta(b * heads + h, i) =
            row_dot(dout.data + i * dout.stride, out.data + i * out.stride, size);
        for (int e = 0; e < size; ++e) gradient.data[i * gradient.stride + e] = T(0);
      });
    }
    team.team_barrier();
  }

  KOKKOS_FUNCTION void key_tile(const Team& team, const Arrays& a, int b, int kv, int k0) const {
    const int keys = static_cast<int>(in.k.extent(1)), size = static_cast<int>(in.q.extent(3));
    const int k1 = k0 + Own < keys ? k0 + Own : keys;
    load_own<Own>(team, head_rows(in.k, b, kv, k0), k1 - k0, size, in.scale, a.key, stride);
    load_own<Own>(team, head_rows(in.v, b, kv, k0), k1 - k0, size, A(1), a.value, stride);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](int e) {
      for (int n = 0; n < Own; ++n) a.dkey[e * stride + n] = a.dvalue[e * stride + n] = 0;
    });
    team.team_barrier();
    for (int h = kv * group(); h < (kv + 1) * group(); ++h) add_head(team, a, b, h, k0, k1);
    store_own(team, a.dkey, stride, A(1), head_rows(dk, b, kv, k0), k1 - k0, size);
    store_own(team, a.dvalue, stride, A(1), head_rows(dv, b, kv, k0), k1 - k0, size);
  }

  /// Adds the contributions of one query head to keys [k0, k1).
  KOKKOS_FUNCTION void add_head(const Team& team, const Arrays& a, int b, int h, int k0,
                                int k1) const {
    const int queries = static_cast<int>(in.q.extent(1)), size = static_cast<int>(in.q.extent(3));
    const int bh = b * static_cast<int>(in.q.extent(2)) + h;
    for (int begin = 0; begin < queries; begin += in.tile.other) {
      const auto [q0, q1, seen] =
          seen_span(begin, Kokkos::min(begin + in.tile.other, queries), in.tile.other,
                    [&](int first, int last) { return in.pattern.tile(b, first, last, k0, k1); });
      if (seen == Tile::none) continue;
      const int rows = q1 - q0;
      auto query = stage_other<T, A>(team, head_rows(in.q, b, h, q0), rows, size, a.staged);
      tile_product<Own>(team, rows, size, query, a.key, a.weights, stride, Sum::fresh);
      if (seen == Tile::mixed) mask(team, a.weights, b, q0, q1, k0, k1);
      const auto dout = stage_other<T, A>(team, head_rows(in.dout, b, h, q0), rows, size, a.staged);
      tile_product<Own>(team, rows, size, dout, a.value, a.dweights, stride, Sum::fresh);
      score_gradient(team, bh, q0, rows, a);
      tile_product<Own>(team, size, rows, transposed(dout), a.weights, a.dvalue, stride, Sum::onto);
      query = stage_other<T, A>(team, head_rows(in.q, b, h, q0), rows, size, a.staged);
      tile_product<Own>(team, size, rows, transposed(query), a.dweights, a.dkey, stride, Sum::onto);
      if constexpr (processor == Processor::host && std::is_same_v<T, A>) {
        if (dq.data()) add_query_gradient(a, b, h, q0, rows, k0, k1 - k0);
      }
    }
  }

  /// dq += ds k, for one tile of queries and keys.
  KOKKOS_FUNCTION void add_query_gradient(const Arrays& a, int b, int h, int q0, int rows, int k0,
                                          int keys) const {
    const auto key = head_rows(in.k, b, h / group(), k0);
    const auto gradient = head_rows(dq, b, h, q0);
    add_product<A>(rows, keys, static_cast<int>(in.q.extent(3)), {a.dweights, stride, 1},
                   {key.data, key.stride}, {gradient.data, gradient.stride});
  }

  KOKKOS_FUNCTION void mask(const Team& team, A* scores, int b, int q0, int q1, int k0,
                            int k1) const {
    const int width = k1 - k0;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, q1 - q0), [&](int query) {
      for (int n = 0; n < width; ++n)
        if (!in.pattern.allowed(b, q0 + query, k0 + n)) scores[query * stride + n] = -infinity<A>;
    });
    team.team_barrier();
  }

  /// Scores in weights become the weights, dweights the gradient of the scores, times scale.
  KOKKOS_FUNCTION void score_gradient(const Team& team, int bh, int q0, int rows,
                                      const Arrays& a) const {
    constexpr int lanes = pack_lanes<A>, across = Own / lanes;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows * across), [&](int i) {
      const int row = i / across, at = row * stride + i % across * lanes;
      const A lse = usable_lse(in.lse(bh, q0 + row)), delta = in.delta(bh, q0 + row);
      const Pack<A> weight = exp_pack<A>(load_pack(a.weights + at) - lse);
      store_pack(a.weights + at, weight);
      store_pack(a.dweights + at, in.scale * weight * (load_pack(a.dweights + at) - delta));
    });
    team.team_barrier();
  }
};

/// Whether the pass over the keys also computes dq: on the host, where it can add to dq in place.
template <class T>
bool key_pass_computes_dq(const Heads<const T>& k) {
  using A = Accumulate<T>;
  if (processor != Processor::host || !std::is_same_v<T, A> || k.extent(3) % pack_lanes<A> != 0)
    return false;
  return k.extent(0) * k.extent(2) >= 2 * static_cast<std::size_t>(Device().concurrency());
}

/// Runs one pass, with one team per head and tile of `length` rows, or one per head.
template <class T, template <class, int> class Kernel, class... Results>
void run_pass(const Context& context, Pass pass, const char* name, Inputs<T> in, int length,
              int heads, bool team_per_tile, Results... results) {
  using A = Accumulate<T>;
  const int size = static_cast<int>(in.q.extent(3));
  in.tile = tile_shape(processor, pass, length, size, sizeof(A));
  in.bytes = scratch_bytes(processor, pass, in.tile, size, sizeof(A));
  in.level = scratch_level(processor, in.bytes);
  const int tiles = team_per_tile ? (length + in.tile.own - 1) / in.tile.own : 1;
  const int league = static_cast<int>(in.q.extent(0)) * heads * tiles;
  if (league == 0) return;
  with_own_width(in.tile.own, [&](auto own) {
    launch_teams(context, name, league, in.level, in.bytes, Kernel<T, own.value>{in, results...});
  });
}

}  // namespace

template <class T>
void AttentionBackward<T>::check() const {
  require_shapes(pattern, q, k);
}

template <class T>
void AttentionBackward<T>::portable(const Context& context, const AttentionBackward& call) {
  const Inputs<T> in{call.pattern,
                     static_cast<Accumulate<T>>(call.scale),
                     call.q,
                     call.k,
                     call.v,
                     call.out,
                     call.dout,
                     call.lse,
                     call.delta,
                     {},
                     0,
                     0};
  const int queries = static_cast<int>(call.q.extent(1)),
            heads = static_cast<int>(call.q.extent(2));
  const int keys = static_cast<int>(call.k.extent(1)),
            kv_heads = static_cast<int>(call.k.extent(2));
  const bool together = key_pass_computes_dq(call.k);
  if (!together)
    run_pass<T, BackwardQuery>(context, Pass::backward_query, "tern::attention_backward_query", in,
                               queries, heads, true, call.dq);
  run_pass<T, BackwardKey>(context, Pass::backward_key, "tern::attention_backward_key", in, keys,
                           kv_heads, !together, call.dk, call.dv, together ? call.dq : Heads<T>());
  undo_rotation(context, call);
}

TERN_INSTANTIATE_PORTABLE(AttentionBackward)

}  // namespace tern::ops
