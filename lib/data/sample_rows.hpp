/// Contents of a batch for block diffusion: samples of several segments, several per row.
#pragma once
#include "data/batch.hpp"

namespace tern::data {

/// A sample within a row: a clean prefix, then the levels, each padded with end tokens to whole
/// blocks (or to the level's maximum).
struct SamplePiece {
  std::uint32_t row = 0;  // of the batch
  std::size_t first = 0;  // its first token in SampleRows::tokens
  std::uint32_t prefix = 0;
  std::array<std::uint32_t, levels> length{};  // tokens per level, padding included
  std::array<std::uint32_t, levels> block{};   // tokens per block; the last one may be shorter

  std::uint32_t tokens() const { return prefix + length[0] + length[1]; }
  /// Positions in a row: the prefix once, each level twice (clean and noisy).
  std::uint32_t positions() const { return prefix + 2 * (length[0] + length[1]); }
};

struct SampleRows {
  std::vector<std::int32_t> tokens;  // of all pieces
  std::vector<SamplePiece> pieces;   // in order of rows
};

}  // namespace tern::data
