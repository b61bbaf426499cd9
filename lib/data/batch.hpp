/// One rank's share of one micro-step, on the host.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace tern::data {

/// Levels of a sample after its clean prefix (block diffusion): a plan, and its execution; a flat
/// sample has the second alone.
constexpr std::size_t levels = 2;
enum Level : std::size_t { plan_level = 0, execution_level = 1 };

/// What is predicted in some rows: for means over a step, and for noise spread evenly over it.
struct Counts {
  std::array<std::int64_t, levels> tokens{};  // the end tokens that fill a level up not counted
  std::array<std::int64_t, levels> blocks{};
  std::int64_t samples = 0;
  std::int64_t data_tokens = 0;  // of the samples, prefixes included

  Counts& operator+=(const Counts& other) {
    for (std::size_t l = 0; l < levels; ++l) {
      tokens[l] += other.tokens[l];
      blocks[l] += other.blocks[l];
    }
    samples += other.samples;
    data_tokens += other.data_tokens;
    return *this;
  }
  bool operator==(const Counts&) const = default;
};

/// A sample that stands in a row: its tokens are a clean prefix and then the levels, each filled up
/// with end tokens to whole blocks (or to the level's maximum).
struct SamplePiece {
  std::uint32_t row = 0;  // of the batch
  std::size_t first = 0;  // of its tokens in Batch::tokens
  std::uint32_t prefix = 0;
  std::array<std::uint32_t, levels> length{};  // tokens of each level, filling included
  std::array<std::uint32_t, levels> block{};   // tokens of a block; the last one may be shorter

  std::uint32_t tokens() const { return prefix + length[0] + length[1]; }
  /// In a row: the prefix stands there once, each level clean and noisy.
  std::uint32_t positions() const { return prefix + 2 * (length[0] + length[1]); }
};

/// A conversation that stands in a row of next-token prediction, on positions [begin, begin +
/// tokens); it sees itself alone.
struct Document {
  std::uint32_t row = 0;  // of the batch
  std::uint32_t begin = 0, tokens = 0;

  bool operator==(const Document&) const = default;
};

struct Batch {
  std::size_t sequences = 0, tokens_per_sequence = 0;  // B, T (positions of a row)
  std::vector<std::uint64_t> samples;                  // (B) global row numbers consumed
  double wait_seconds = 0;  // how long next() had to wait for the prefetch thread

  // Of next-token prediction.
  std::vector<std::int32_t> inputs;   // (B*T)
  std::vector<std::int32_t> targets;  // (B*T), the next token; -1: ignored
  // Of supervised training, beside these two; what stands on no document is padding.
  std::vector<Document> documents;  // in order of rows and positions

  // Of block diffusion: samples of several segments, several in a row.
  std::vector<std::int32_t> tokens;  // of all pieces
  std::vector<SamplePiece> pieces;   // in order of rows

  // Of the optimizer step that the batch belongs to: its number, what its rows of all ranks and
  // micro-steps count, those before this batch's rows, and this batch's own.
  std::uint64_t step_number = 0;
  Counts step, before, own;
};

/// Row numbers 0..N-1 sorted by (token, row), by counting sort: the order of embedding_backward.
void sort_rows_by_token(const std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& order);

}  // namespace tern::data
