/// Parameters of block sampling.
#pragma once
#include <cstdint>

#include "ops/ops.hpp"

namespace tern::generate {

/// One level of the sequences to sample.
struct LevelRule {
  std::size_t tokens = 0;   // maximum
  std::size_t block = 0;    // tokens per block; the level's last one may be shorter; 0: one block
  std::int32_t level = -1;  // row of the level embedding; -1: the model has none
  std::size_t ends = 1;     // end tokens that finish the level; 0: it continues to `tokens`
  std::size_t block_tokens() const { return block > 0 && block < tokens ? block : tokens; }
};

struct BlockSampling {
  enum class Method { ddpm, first_hitting };
  ops::Sampling sampling;
  Method method = Method::first_hitting;
  std::size_t steps = 0;       // ddpm: per block; 0: one per token
  std::int32_t mask = -1;      // the mask token
  std::int32_t end = -1;       // the end token; -1: none
  std::size_t vocabulary = 0;  // tokens at or above it are never drawn, so at most `mask`
  std::size_t first = 0;       // number of the first prompt; keys random numbers
};

}  // namespace tern::generate
