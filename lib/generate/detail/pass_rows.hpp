/// Rows of one pass of block sampling, on the host: consecutive slots of the cache, the same number
/// of rows each. A row that is never put is padding: it attends to nothing and is not stored.
#pragma once
#include <algorithm>
#include <vector>

#include "ops/attention/pattern.hpp"

namespace tern::generate::detail {

class PassRows {
 public:
  /// Sequences in slots [first_slot, first_slot + sequences), `rows` rows each; slot_tokens per
  /// slot.
  PassRows(std::size_t first_slot, std::size_t sequences, std::size_t rows, std::size_t slot_tokens)
      : first_slot_(first_slot),
        sequences_(sequences),
        rows_(rows),
        slot_tokens_(slot_tokens),
        integers_(4 * count(), 0),
        table_(sequences, rows) {
    std::fill_n(integers_.begin() + number(places_at * count()), count(), -1);
  }

  /// The token at a sequence's `position`, which attends to the positions below `sees`.
  void put(std::size_t slot, std::size_t row, std::int32_t token, std::size_t position,
           std::int32_t level, std::size_t sees) {
    const std::size_t sequence = slot - first_slot_, n = sequence * rows_ + row;
    integers_[n] = token;
    integers_[positions_at * count() + n] = number(position);
    integers_[places_at * count() + n] = number(slot * slot_tokens_ + position);
    integers_[levels_at * count() + n] = level < 0 ? 0 : level;
    table_.at(sequence, row) = {{0, number(sees)}, {}};
    keys_ = std::max(keys_, sees);
  }
  /// After the last put().
  void finish() { table_.finish(); }

  std::size_t first_slot() const { return first_slot_; }
  std::size_t sequences() const { return sequences_; }
  std::size_t rows() const { return rows_; }                               // per sequence
  std::size_t count() const { return sequences_ * rows_; }                 // N
  std::size_t keys() const { return keys_; }                               // maximum attended
  const std::vector<std::int32_t>& integers() const { return integers_; }  // (4, N)
  const ops::SpanTable& table() const { return table_; }

  // Parts of N integers each: tokens first.
  static constexpr std::size_t positions_at = 1, places_at = 2, levels_at = 3;

 private:
  static std::int32_t number(std::size_t value) { return static_cast<std::int32_t>(value); }

  std::size_t first_slot_, sequences_, rows_, slot_tokens_, keys_ = 0;
  std::vector<std::int32_t> integers_;
  ops::SpanTable table_;
};

}  // namespace tern::generate::detail
