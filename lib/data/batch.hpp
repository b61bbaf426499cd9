/// One rank's share of one micro-step, on the host.
#pragma once
#include <cstdint>
#include <vector>

namespace tern::data {

struct Batch {
  std::size_t sequences = 0, tokens_per_sequence = 0;  // B, T
  std::vector<std::int32_t> inputs;                    // (B*T)
  std::vector<std::int32_t> targets;                   // (B*T), the next token; -1: ignored
  std::vector<std::uint64_t> samples;                  // (B) global sample numbers consumed
  double wait_seconds = 0;  // how long next() had to wait for the prefetch thread
};

/// Row numbers 0..N-1 sorted by (token, row), by counting sort: the order of embedding_backward.
void sort_rows_by_token(const std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& order);

}  // namespace tern::data
