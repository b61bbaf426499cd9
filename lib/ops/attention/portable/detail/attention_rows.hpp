/// Attention of a few queries on the host, as in generation with a cache: one query at a time,
/// packs along the head size, so each key and value is read once and no lane is idle.
#pragma once
#include "ops/attention/portable/detail/attention_tiles.hpp"

namespace tern::ops::portable::attention {

constexpr int max_head_size = 256;
/// Most queries for which attention runs row by row.
constexpr int few_queries = 4;

template <class T>
struct RowForward {
  using A = Accumulate<T>;
  static constexpr int step = 64;  // keys per round of the online softmax
  Pattern pattern;
  A scale;
  Heads<const T> q, k, v;
  Heads<T> out;
  Matrix<A> lse;

  /// Running softmax.
  struct State {
    A largest, total;
    alignas(64) A sum[max_head_size];
    alignas(64) A weights[step];
  };

  void operator()(const int row) const {
    const int queries = static_cast<int>(q.extent(1)), keys = static_cast<int>(k.extent(1));
    const int heads = static_cast<int>(q.extent(2)), size = static_cast<int>(q.extent(3));
    const int t = row % queries, bh = row / queries, b = bh / heads, h = bh % heads;
    const int kv = h / (heads / static_cast<int>(k.extent(2)));
    State state;
    state.largest = -Kokkos::Experimental::infinity_v<A>;
    state.total = 0;
    for (int e = 0; e < size; ++e) state.sum[e] = 0;
    for (int k0 = 0; k0 < keys; k0 += step) {
      const int k1 = Kokkos::min(k0 + step, keys);
      const Tile seen = pattern.tile(b, t, t + 1, k0, k1);
      if (seen == Tile::none) continue;
      scores(state, head_rows(q, b, h, t).data, head_rows(k, b, kv, k0), k1 - k0);
      if (seen == Tile::mixed)
        for (int key = k0; key < k1; ++key)
          if (!pattern.allowed(b, t, key))
            state.weights[key - k0] = -Kokkos::Experimental::infinity_v<A>;
      softmax(state, size);
      add_values(state, head_rows(v, b, kv, k0), k1 - k0, size);
    }
    lse(bh, t) = state.largest + std::log(state.total);
    const A factor = state.total > 0 ? 1 / state.total : A(0);
    T* to = head_rows(out, b, h, t).data;
    for (int e = 0; e < size; ++e) to[e] = static_cast<T>(factor * state.sum[e]);
  }

  /// weights = scores of the keys, -inf beyond them.
  void scores(State& state, const T* query, Rows<const T> key, int keys) const {
    const int size = static_cast<int>(q.extent(3));
    for (int j = 0; j < keys; ++j)
      state.weights[j] = scale * row_dot(query, key.data + j * key.stride, size);
    for (int j = keys; j < step; ++j) state.weights[j] = -Kokkos::Experimental::infinity_v<A>;
  }

  /// Scores become weights; earlier sums are rescaled to the new maximum.
  static void softmax(State& state, int size) {
    const A before = state.largest;
    for (const A score : state.weights)
      state.largest = score > state.largest ? score : state.largest;
    const bool nothing = state.largest == -Kokkos::Experimental::infinity_v<A>;
    const A shift = nothing ? A(0) : state.largest;  // -inf - -inf would be NaN
    const A factor = std::exp(before - shift);
    Pack<A> total{};
    for (int j = 0; j < step; j += pack_lanes<A>) {
      const Pack<A> weight = exp_pack<A>(load_pack(state.weights + j) - splat(shift));
      store_pack(state.weights + j, weight);
      total += weight;
    }
    A lanes[pack_lanes<A>];
    store_pack(lanes, total);
    state.total *= factor;
    for (const A lane : lanes) state.total += lane;
    for (int e = 0; e < size; ++e) state.sum[e] *= factor;
  }

  static void add_values(State& state, Rows<const T> value, int keys, int size) {
    for (int j = 0; j < keys; ++j) {
      const T* from = value.data + j * value.stride;
      const A weight = state.weights[j];
      for (int e = 0; e < size; ++e) state.sum[e] += weight * static_cast<A>(from[e]);
    }
  }
};

}  // namespace tern::ops::portable::attention
