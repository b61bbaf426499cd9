/// One micro-batch of one rank, on the host.
#pragma once
#include <any>
#include <array>
#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace tern::data {

/// Levels of a sample after its clean prefix (block diffusion): plan and execution; a flat sample
/// has the execution only.
constexpr std::size_t levels = 2;
enum Level : std::size_t { plan_level = 0, execution_level = 1 };
/// The level that holds all predicted tokens of data without a hierarchy.
constexpr Level only_level = execution_level;

/// Predicted tokens, blocks and samples of some rows: for means over a step, and for noise spread
/// evenly over it.
struct Counts {
  std::array<std::int64_t, levels> tokens{};  // without the end tokens that pad a level
  std::array<std::int64_t, levels> blocks{};
  std::int64_t samples = 0;
  std::int64_t data_tokens = 0;  // tokens of the samples, prefixes included

  std::int64_t predicted() const { return tokens[plan_level] + tokens[execution_level]; }
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

/// A conversation within a row of next-token prediction, at positions [begin, begin + tokens); they
/// attend to this document only.
struct Document {
  std::uint32_t row = 0;  // of the batch
  std::uint32_t begin = 0, tokens = 0;

  bool operator==(const Document&) const = default;
};

struct Batch {
  std::size_t sequences = 0, tokens_per_sequence = 0;  // B, T (positions per row)
  std::vector<std::uint64_t> samples;                  // (B) global row numbers; fewer: rest empty
  double wait_seconds = 0;  // time that next() waited for a prefetch thread

  // Next-token prediction.
  std::vector<std::int32_t> inputs;   // (B*T)
  std::vector<std::int32_t> targets;  // (B*T), the next token; -1: ignored
  // Supervised training, in addition; positions outside of documents are padding.
  std::vector<Document> documents;  // in order of rows and positions

  /// Other contents, of the type that the objective's source makes and the objective reads (e.g.
  /// SampleRows).
  std::any contents;
  template <class C>
  C& make() {
    return contents.has_value() ? std::any_cast<C&>(contents) : contents.emplace<C>();
  }
  template <class C>
  const C& as() const {
    const C* found = std::any_cast<C>(&contents);
    TERN_REQUIRE(found, "a batch of another objective");
    return *found;
  }

  // The optimizer step that the batch belongs to: its number, and the counts of all its rows (all
  // ranks and micro-batches), of the rows before this batch, and of this batch.
  std::uint64_t step_number = 0;
  Counts step, before, own;
};

/// Row numbers 0..N-1 sorted by (token, row), a counting sort: the order for embedding_backward.
void sort_rows_by_token(const std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& order);

}  // namespace tern::data
