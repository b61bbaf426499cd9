/// Batches of block diffusion made by hand.
#pragma once
#include <random>
#include <vector>

#include "data/sample_rows.hpp"

namespace tern::test {

using data::execution_level;
using data::plan_level;

/// A sample as a test writes it down.
struct Made {
  std::uint32_t row = 0, prefix = 0;
  std::array<std::uint32_t, data::levels> length{}, block{};
};

inline Made flat(std::uint32_t row, std::uint32_t prefix, std::uint32_t length,
                 std::uint32_t block) {
  return {row, prefix, {0, length}, {0, block}};
}

inline std::uint32_t positions_of(const Made& made) {
  return made.prefix + 2 * (made.length[0] + made.length[1]);
}

/// Adds what a sample counts.
inline void count(const Made& made, data::Counts& counts) {
  for (std::size_t l = 0; l < data::levels; ++l) {
    counts.tokens[l] += made.length[l];
    if (made.length[l] > 0)
      counts.blocks[l] += (made.length[l] + made.block[l] - 1) / made.block[l];
    counts.data_tokens += made.length[l];
  }
  counts.data_tokens += made.prefix;
  ++counts.samples;
}

/// The samples, in order of their rows, with `tokens` one sample after the other; a whole step of
/// its own. Row r has global number `first_row` + r.
inline data::Batch batch_of(const std::vector<Made>& samples, std::size_t rows,
                            std::size_t positions, const std::vector<std::int32_t>& tokens,
                            std::uint64_t first_row = 0) {
  data::Batch batch;
  batch.sequences = rows;
  batch.tokens_per_sequence = positions;
  for (std::size_t r = 0; r < rows; ++r) batch.samples.push_back(first_row + r);
  auto& rows_of_batch = batch.make<data::SampleRows>();
  rows_of_batch.tokens = tokens;
  std::size_t first = 0;
  for (const Made& made : samples) {
    rows_of_batch.pieces.push_back({made.row, first, made.prefix, made.length, made.block});
    first += rows_of_batch.pieces.back().tokens();
    count(made, batch.own);
  }
  batch.step = batch.own;
  return batch;
}

inline std::size_t tokens_of(const std::vector<Made>& samples) {
  data::Counts counts;
  for (const Made& made : samples) count(made, counts);
  return static_cast<std::size_t>(counts.data_tokens);
}

/// Random tokens in [0, vocabulary - 1): the last one is the mask.
inline std::vector<std::int32_t> random_tokens_of(const std::vector<Made>& samples,
                                                  std::int32_t vocabulary, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> tokens(tokens_of(samples));
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(generator() % static_cast<unsigned>(vocabulary - 1));
  return tokens;
}

}  // namespace tern::test
