/// The host's side of block diffusion: samples laid out in rows, and noise drawn for them.
///
/// A sample of a clean prefix (P tokens) and n tokens in blocks takes P + 2n positions, one after
/// another in its row: prefix, the n tokens clean (x_0), the n tokens noisy (x_t); both copies of a
/// token have the same position number, P + i. The prefix sees itself; a clean token the prefix,
/// the earlier blocks and its own block, all clean; a noisy one the prefix and the earlier blocks
/// clean, and its own block noisy. (Arriola et al. 2025, section 3 and appendix B, with the prefix
/// added; without one and with one level it is their mask over [x_t | x_0].)
#pragma once
#include <array>
#include <vector>

#include "data/batch.hpp"
#include "ops/pattern.hpp"

namespace tern::objective::detail {

/// Times are drawn from [low, high].
struct Clip {
  double low = 1e-3, high = 1;
};

struct Noise {
  std::uint64_t seed = 0;
  bool evaluating = false;  // other random numbers than in training
  std::array<Clip, data::levels> clip;
};

/// One block of a batch, and the noise drawn for it.
struct NoisyBlock {
  std::size_t level = 0;
  std::uint32_t tokens = 0;
  double t = 1;       // probability that a token is masked
  double weight = 1;  // of a masked token's loss: 1 / t
};

class BlockRows {
 public:
  /// batch rows of `positions`.
  BlockRows(std::size_t batch, std::size_t positions, std::int32_t mask_token);

  /// Lays the batch out and masks it. Times are spread evenly over the blocks of a level of the
  /// whole step (one in each of as many equal parts of the interval as there are blocks, in a
  /// random order), which is what the reference's antithetic sampling does.
  void fill(const data::Batch& batch, const Noise& noise);

  // Of each position (B*T).
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& positions() const { return positions_; }
  const std::vector<std::int32_t>& levels() const { return levels_; }  // 0 prefix, 1 + level
  const ops::SpanTable& table() const { return table_; }
  // Of each masked token (M), in order of its position.
  const std::vector<std::int32_t>& masked() const { return masked_; }  // its row in B*T
  const std::vector<std::int32_t>& targets() const { return targets_; }
  const std::vector<std::uint32_t>& block_of() const { return block_of_; }
  const std::vector<NoisyBlock>& blocks() const { return blocks_; }

 private:
  void lay_out(const data::Batch&, const data::SamplePiece&, std::size_t begin);
  void draw(const data::Batch&, const data::SamplePiece&, const Noise&, std::size_t begin,
            std::size_t in_row);

  std::size_t positions_of_row_;
  std::int32_t mask_token_;
  std::vector<std::int32_t> tokens_, positions_, levels_, masked_, targets_;
  std::vector<std::uint32_t> block_of_;
  std::vector<NoisyBlock> blocks_;
  std::array<std::int64_t, data::levels> drawn_{};  // blocks of this batch so far
  ops::SpanTable table_;
};

/// Time of block `cell` of `cells`: uniform in [low, high], in the cell's own part of it. `step`
/// orders the parts, `number` in [0, 1) places the time within one.
double spread_time(const Clip& clip, std::int64_t cell, std::int64_t cells, std::uint64_t step,
                   std::uint64_t seed, double number);

}  // namespace tern::objective::detail
