/// How the activations of a transformer are requested from the arena, and narrowed to fewer rows.
#pragma once
#include <string>

#include "memory/arena.hpp"
#include "model/layer_state.hpp"

namespace tern::model::detail {

struct StateOptions {
  std::size_t batch, tokens;
  bool layernorm, qk_norm;
  bool training;  // false: one normed buffer serves both halves, and middle is input
};

/// Everything of a LayerState but `input`, named LABEL/...; `middle` only in training.
template <class T>
LayerState<T> request_state(Arena& arena, const std::string& label, const Dimensions& size,
                            const StateOptions& options);

/// The same buffers for batch x tokens rows.
template <class T>
LayerState<T> narrow(const LayerState<T>& whole, const Dimensions& size, std::size_t batch,
                     std::size_t tokens);

template <class V>
V narrow_rows(const V& view, std::size_t rows) {
  if (view.extent(0) == 0) return view;
  if constexpr (V::rank == 1)
    return V(view.data(), rows);
  else
    return V(view.data(), rows, view.extent(1));
}

}  // namespace tern::model::detail
