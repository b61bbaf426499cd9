/// Sampling of block diffusion (BD3-LM; Arriola et al., arXiv 2503.09573, algorithm 2) and of HDP:
/// level by level, block by block, with a key-value cache of finished tokens.
///
/// A sequence is laid out as in training (objective/detail/block_rows.hpp): a clean prefix, which
/// attends to itself, then the levels in blocks; positions count through all of them. A block
/// starts as mask tokens. Each pass runs the block's tokens, which attend to the finished ones and
/// each other, and unmasks some; masks are never drawn, and unmasked tokens stay (SUBS). The next
/// block's first pass computes the finished block's keys and values.
///
/// Only random numbers determine which tokens a pass unmasks, so passes that would unmask none are
/// never run. `ddpm`: `steps` steps, t from 1 to 0 in equal parts; a token masked at t stays masked
/// at s with probability s / t, so each one is unmasked in any of the steps with equal probability.
/// `first_hitting` (Zheng et al., arXiv 2409.02908): one token per pass, in random order; the times
/// t u^(1/masked) do not enter the model. ddpm with many steps is equivalent, with few faster and
/// coarser.
#pragma once
#include <cstdint>
#include <vector>

#include "generate/block_rules.hpp"
#include "generate/detail/block_cache.hpp"
#include "generate/detail/block_sequence.hpp"
#include "generate/detail/pass_rows.hpp"
#include "model/decoder.hpp"

namespace tern::generate {

template <class T>
class BlockSampler {
 public:
  /// batch: sequences sampled together. max_tokens: per sequence, prefix and levels. The cache
  /// takes layers x 2 x batch x max_tokens x K E elements of the arena.
  BlockSampler(const deck::Model& model, const model::ParameterTree& tree,
               const model::Parameters<T>& parameters, std::size_t batch, std::size_t max_tokens,
               std::size_t largest_block, Arena& arena);

  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context& context) { decoder_.prepare(context); }

  /// Tokens of each level of each prompt, in whole blocks including padding: [prompt][level].
  ///
  /// prompts: clean prefixes, which may be empty; more than `batch` are processed in batches.
  /// given: empty, or [prompt][level] tokens that the level begins with. A level that they finish
  /// (by its last end token or by its length: a plan from the data) is not sampled; otherwise it is
  /// continued after them (an unconditional model's question); mask tokens among them are sampled.
  ///
  /// A sequence's tokens depend only on its prompt, its number, what is given, the rules and the
  /// options, up to rounding of matrix products of different heights. Throws UserError, naming the
  /// prompt, if it is too long, its tokens are not the model's, given tokens exceed their level, or
  /// logits are not finite. Waits for the device after each pass.
  std::vector<std::vector<std::vector<std::int32_t>>> sample(
      const ops::Context& context, const std::vector<std::vector<std::int32_t>>& prompts,
      const std::vector<LevelRule>& levels,
      const std::vector<std::vector<std::vector<std::int32_t>>>& given,
      const BlockSampling& options);

  /// Sequences sampled together.
  std::size_t batch() const { return batch_; }

  /// Over all sample() calls: forward passes and their rows, padding included.
  struct Work {
    std::size_t passes = 0, rows = 0;
  };
  const Work& work() const { return work_; }

 private:
  using Sequence = detail::BlockSequence;
  /// Current block of all sequences, in one pass over them.
  struct Block {
    std::size_t row, tokens;  // its place among a sequence's rows
    std::size_t pass;         // pass over this block
    std::int32_t level;
  };

  void check(const std::vector<LevelRule>& levels, const BlockSampling& options) const;
  void check_sequences(const std::vector<std::vector<std::int32_t>>& prompts,
                       const std::vector<LevelRule>& levels,
                       const std::vector<std::vector<std::vector<std::int32_t>>>& given,
                       const BlockSampling& options) const;

  void sample_level(const ops::Context&, const LevelRule&, const BlockSampling&);
  std::size_t compact(const ops::Context&, std::size_t at);
  void denoise(const ops::Context&, std::size_t active, std::size_t count, const LevelRule&,
               const BlockSampling&);
  void catch_up(const ops::Context&, std::size_t active);
  std::size_t max_pending(std::size_t first, std::size_t last) const;
  detail::PassRows rows_of(std::size_t first, std::size_t last, const Block&);
  Matrix<const T> run(const ops::Context&, const detail::PassRows&);
  void draw(const ops::Context&, Matrix<const T> finished, std::size_t active, const Block&,
            const BlockSampling&);
  std::vector<std::int32_t> draw_rows(const ops::Context&, Matrix<const T> finished,
                                      std::vector<std::int32_t> rows,
                                      const std::vector<std::int32_t>& requests,
                                      const BlockSampling&);

  model::Dimensions size_;
  std::size_t batch_, max_tokens_, largest_block_, rows_;
  std::size_t levels_;  // rows of the level embedding
  double scale_;
  model::Decoder<T> decoder_;
  detail::BlockCache<T> cache_;
  std::vector<Sequence> sequences_;  // the batch, each at its slot of the cache
  Work work_;

  Vector<std::int32_t> integers_;   // (4 N), of a pass
  Vector<ops::KeySpans> spans_;     // (N)
  Vector<ops::SpanHull> hulls_;     // (N)
  Vector<std::int32_t> picked_at_;  // (2 M) rows and requests of drawn tokens
  Vector<std::int32_t> drawn_;      // (M)
  Matrix<T> picked_;                // (C, D), a chunk of rows to draw from
  Matrix<T> logits_;                // (C, V)
};

}  // namespace tern::generate
