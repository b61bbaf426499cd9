/// Host side of block diffusion: samples laid out in rows, and noise drawn for them.
///
/// A sample of a clean prefix (P tokens) and n tokens in blocks takes P + 2n consecutive positions
/// of its row: prefix, the n tokens clean (x_0), the n tokens noisy (x_t); both copies of token i
/// have position number P + i. The prefix attends to itself; a clean token to the prefix and to the
/// clean copies of earlier blocks and its own; a noisy one to the prefix, the clean copies of
/// earlier blocks and the noisy copy of its own. (Arriola et al. 2025, section 3 and appendix B,
/// with the prefix added; with no prefix and one level it is their mask over [x_t | x_0].)
#pragma once
#include <array>
#include <vector>

#include "data/sample_rows.hpp"
#include "ops/attention/pattern.hpp"

namespace tern::objective::detail {

/// Times are drawn from [low, high].
struct Clip {
  double low = 1e-3, high = 1;
};

struct Noise {
  std::uint64_t seed = 0;
  bool evaluating = false;  // random numbers differ from training's
  std::array<Clip, data::levels> clip;
};

/// A block of a batch and its noise.
struct NoisyBlock {
  std::size_t level = 0;
  std::uint32_t tokens = 0;
  double t = 1;       // masking probability
  double weight = 1;  // loss weight of a masked token: 1 / t
};

class BlockRows {
 public:
  /// `batch` rows of `positions`.
  BlockRows(std::size_t batch, std::size_t positions, std::int32_t mask_token);

  /// Lays the batch out and masks it. Times are stratified over a level's blocks of the whole step
  /// (one in each of as many equal parts of the interval as there are blocks, in random order), as
  /// in the reference's antithetic sampling.
  void fill(const data::Batch& batch, const Noise& noise);

  // Per position (B*T).
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& positions() const { return positions_; }
  const std::vector<std::int32_t>& levels() const { return levels_; }  // 0 prefix, 1 + level
  const ops::SpanTable& table() const { return table_; }
  // Per masked token (M), in order of position.
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

/// Time of block `cell` of `cells`: uniform in the cell's part of [low, high]. `step` orders the
/// parts, `number` in [0, 1) is the time within one.
double spread_time(const Clip& clip, std::int64_t cell, std::int64_t cells, std::uint64_t step,
                   std::uint64_t seed, double number);

}  // namespace tern::objective::detail
