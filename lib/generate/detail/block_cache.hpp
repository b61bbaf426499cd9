/// Key-value cache of a batch's sequences, one slot each.
#pragma once
#include "memory/arena.hpp"
#include "ops/core/context.hpp"

namespace tern::generate::detail {

template <class T>
class BlockCache {
 public:
  /// width: K E.
  BlockCache(std::size_t layers, std::size_t slots, std::size_t tokens, std::size_t heads,
             std::size_t head_size, Arena& arena);

  /// Stores the keys and values of a pass: `both` (N, 2 K E, any row stride) [keys | values] at
  /// places (N), each slot * tokens + position; -1: not stored.
  void store(const ops::Context&, std::size_t layer, const T* both, std::size_t row_stride,
             Vector<const std::int32_t> places) const;
  /// (sequences, tokens, K, E) from slot `first` on.
  Heads<const T> keys(std::size_t layer, std::size_t first, std::size_t sequences,
                      std::size_t tokens) const {
    return heads(2 * layer, first, sequences, tokens);
  }
  Heads<const T> values(std::size_t layer, std::size_t first, std::size_t sequences,
                        std::size_t tokens) const {
    return heads(2 * layer + 1, first, sequences, tokens);
  }
  /// Exchanges the first `tokens` tokens of two slots.
  void exchange(const ops::Context&, std::size_t a, std::size_t b, std::size_t tokens) const;

 private:
  Heads<const T> heads(std::size_t part, std::size_t first, std::size_t sequences,
                       std::size_t tokens) const;

  std::size_t slots_, tokens_, heads_, head_size_;
  Matrix<T> data_;  // (2 layers, slots * tokens * K E): keys and values in turn
};

}  // namespace tern::generate::detail
