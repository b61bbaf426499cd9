#include "objective/block_diffusion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"

namespace tern::objective {
namespace {

using data::levels;

/// Equal intervals of time that evaluation distinguishes.
constexpr std::size_t bins = 20;

/// What is counted in a bin: blocks, sum over them of the mean loss per token and of its square;
/// masked tokens, and those predicted correctly.
enum class Count : std::size_t { blocks, loss, squares, masked, correct };
constexpr std::size_t counts_of_bin = 5;

/// A level's part of an evaluation's sums. D: double or const double.
template <class D>
class LevelSums {
 public:
  static constexpr std::size_t size = 2 + bins * counts_of_bin;
  template <class Sums>
  LevelSums(Sums& sums, std::size_t level) : at_(sums.data() + level * size) {}

  D& loss() const { return at_[0]; }
  D& tokens() const { return at_[1]; }
  D& bin(std::size_t b, Count count) const {
    return at_[2 + b * counts_of_bin + static_cast<std::size_t>(count)];
  }

 private:
  D* at_;
};
using Sums = LevelSums<const double>;

std::size_t bin_of(double t) {
  return std::min(bins - 1, static_cast<std::size_t>(t * static_cast<double>(bins)));
}

/// Variance of the losses of blocks with times in bins [first, last).
double variance(const Sums& sums, std::size_t first, std::size_t last) {
  const auto total = [&](Count count) {
    double sum = 0;
    for (std::size_t b = first; b < last; ++b) sum += sums.bin(b, count);
    return sum;
  };
  const double blocks = total(Count::blocks);
  if (blocks < 2) return std::numeric_limits<double>::infinity();
  const double mean = total(Count::loss) / blocks;
  return total(Count::squares) / blocks - mean * mean;
}

/// The window of width 0.5 to 0.9 of least variance.
detail::Clip search(const Sums& sums, const detail::Clip& now) {
  detail::Clip best = now;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t width = bins / 2; width <= bins * 9 / 10; ++width)
    for (std::size_t first = 0; first + width <= bins; ++first) {
      const double v = variance(sums, first, first + width);
      if (!(v < least)) continue;
      least = v;
      best = {std::max(1e-3, static_cast<double>(first) / bins),
              static_cast<double>(first + width) / bins};
    }
  return best;
}

std::size_t rows_of(const Shape& shape) { return shape.batch * shape.tokens; }

}  // namespace

template <class T>
BlockDiffusion<T>::BlockDiffusion(const deck::Deck& deck, const Shape& shape, Arena& arena)
    : options_(deck.objective),
      seed_(static_cast<std::uint64_t>(deck.campaign.seed)),
      hierarchical_(deck::hierarchical(deck.objective)),
      head_{deck.objective.z_loss, static_cast<std::size_t>(deck.model.vocabulary) - 1},
      rows_(arena.measuring() ? 0 : shape.batch, shape.tokens,
            static_cast<std::int32_t>(deck.model.vocabulary) - 1),
      tokens_("inputs", shape, rows_of(shape), arena),
      order_("token order", shape, rows_of(shape), arena),
      positions_("positions", shape, rows_of(shape), arena),
      masked_("masked rows", shape, rows_of(shape) / 2, arena),
      targets_("targets", shape, rows_of(shape) / 2, arena),
      spans_("key spans", shape, rows_of(shape), arena),
      hulls_("span hulls", shape,
             shape.batch *
                 static_cast<std::size_t>(ops::Pattern::groups(static_cast<int>(shape.tokens))),
             arena),
      weights_("loss weights", shape, rows_of(shape) / 2, arena) {
  clip_.fill({options_.clip_low, options_.clip_high});
  if (!hierarchical_) return;
  levels_ = std::make_unique<Staging<std::int32_t>>("levels", shape, rows_of(shape), arena);
  level_order_ =
      std::make_unique<Staging<std::int32_t>>("level order", shape, rows_of(shape), arena);
  for (std::size_t level = 0; level < levels; ++level)
    part_weights_.emplace_back("weights of " + label(level), shape, rows_of(shape) / 2, arena);
}

template <class T>
std::string BlockDiffusion<T>::label(std::size_t level) const {
  return level == data::plan_level ? "plan" : "execution";
}

template <class T>
std::vector<std::string> BlockDiffusion<T>::parts() const {
  if (!hierarchical_) return {};
  return {label(data::plan_level), label(data::execution_level)};
}

template <class T>
double BlockDiffusion<T>::per_token(double loss, const std::vector<double>& parts,
                                    const data::Counts& counts) const {
  if (!hierarchical_) return loss;
  double sum = 0, tokens = 0;
  for (std::size_t l = 0; l < levels; ++l) {
    sum += parts[l] * static_cast<double>(counts.tokens[l]);
    tokens += static_cast<double>(counts.tokens[l]);
  }
  return sum / tokens;
}

template <class T>
Prepared<T> BlockDiffusion<T>::prepare(const ops::Context& context, const data::Batch& batch,
                                       std::size_t slot, bool evaluating) {
  detail::Noise noise{seed_, evaluating, clip_};
  if (evaluating) noise.clip.fill({});
  rows_.fill(batch, noise);
  own_ = batch.own;
  const Device& space = context.space;
  const auto sorted = [&](const std::vector<std::int32_t>& values) -> auto& {
    data::sort_rows_by_token(values, sorted_);
    return sorted_;
  };
  Prepared<T> p;
  p.rows.tokens = tokens_.copy(space, rows_.tokens(), slot);
  p.rows.order = order_.copy(space, sorted(rows_.tokens()), slot);
  p.rows.positions = positions_.copy(space, rows_.positions(), slot);
  if (hierarchical_) {
    p.rows.levels = levels_->copy(space, rows_.levels(), slot);
    p.rows.level_order = level_order_->copy(space, sorted(rows_.levels()), slot);
  }
  p.pattern = rows_.table().pattern(spans_.copy(space, rows_.table().spans(), slot).data(),
                                    hulls_.copy(space, rows_.table().hulls(), slot).data());
  p.scored = {masked_.copy(space, rows_.masked(), slot),
              targets_.copy(space, rows_.targets(), slot)};

  /// Weights of masked tokens: scale[level] / t / tokens of the level in the step; 1 in evaluation.
  const auto weights = [&](Staging<A>& staging, std::array<double, levels> scale) {
    values_.clear();
    for (const std::uint32_t b : rows_.block_of()) {
      const detail::NoisyBlock& block = rows_.blocks()[b];
      const double tokens = static_cast<double>(batch.step.tokens[block.level]);
      values_.push_back(
          static_cast<A>(evaluating ? 1 : scale[block.level] * block.weight / tokens));
    }
    return staging.copy(space, values_, slot);
  };
  const bool two = hierarchical_;
  p.weights =
      weights(weights_, {two ? options_.plan_weight : 1, two ? options_.execution_weight : 1});
  for (std::size_t part = 0; part < part_weights_.size(); ++part) {
    std::array<double, levels> scale{};
    scale[part] = 1;
    p.parts.push_back({weights(part_weights_[part], scale)});
  }
  return p;
}

template <class T>
std::size_t BlockDiffusion<T>::sums() const {
  return levels * Sums::size;
}

template <class T>
void BlockDiffusion<T>::accumulate(std::size_t, const std::vector<double>& losses,
                                   const std::vector<std::int32_t>& best,
                                   std::vector<double>& sums) {
  TERN_REQUIRE(losses.size() == rows_.masked().size() && sums.size() == this->sums());
  const auto of_level = [&](std::size_t level) { return LevelSums<double>(sums, level); };
  const std::vector<detail::NoisyBlock>& blocks = rows_.blocks();
  std::vector<double> of_block(blocks.size(), 0);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const detail::NoisyBlock& block = blocks[rows_.block_of()[i]];
    of_block[rows_.block_of()[i]] += block.weight * losses[i];
    const auto level = of_level(block.level);
    level.bin(bin_of(block.t), Count::masked) += 1;
    level.bin(bin_of(block.t), Count::correct) += best[i] == rows_.targets()[i] ? 1 : 0;
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto level = of_level(blocks[b].level);
    const std::size_t bin = bin_of(blocks[b].t);
    const double mean = of_block[b] / blocks[b].tokens;
    level.loss() += of_block[b];
    level.bin(bin, Count::blocks) += 1;
    level.bin(bin, Count::loss) += mean;
    level.bin(bin, Count::squares) += mean * mean;
  }
  for (std::size_t l = 0; l < levels; ++l)
    of_level(l).tokens() += static_cast<double>(own_.tokens[l]);
}

template <class T>
Score BlockDiffusion<T>::finalize(const std::vector<double>& sums, bool training) {
  Score score;
  double masked = 0, correct = 0;
  for (std::size_t l = 0; l < levels; ++l) {
    const Sums level(sums, l);
    if (level.tokens() == 0) continue;
    score.loss += level.loss();
    score.tokens += static_cast<std::int64_t>(level.tokens());
    const std::string suffix = hierarchical_ ? "_" + label(l) : std::string();
    if (hierarchical_) score.metrics["val/loss" + suffix] = level.loss() / level.tokens();
    for (std::size_t b = 0; b < bins; ++b) {
      const double of_bin = level.bin(b, Count::masked), right = level.bin(b, Count::correct);
      const double t = (static_cast<double>(b) + 0.5) / bins;
      if (of_bin > 0)
        score.metrics[fmt::format("val/accuracy_t{}/{:.3f}", suffix, t)] = right / of_bin;
      masked += of_bin;
      correct += right;
    }
    if (training && options_.clip_search) clip_[l] = search(level, clip_[l]);
    score.metrics["train/clip_low" + suffix] = clip_[l].low;
    score.metrics["train/clip_high" + suffix] = clip_[l].high;
  }
  score.loss /= static_cast<double>(score.tokens);
  score.metrics["val/accuracy"] = masked > 0 ? correct / masked : 0;
  return score;
}

template <class T>
std::map<std::string, double> BlockDiffusion<T>::state() const {
  std::map<std::string, double> state;
  for (std::size_t l = 0; l < levels; ++l) {
    state["clip_low_" + label(l)] = clip_[l].low;
    state["clip_high_" + label(l)] = clip_[l].high;
  }
  return state;
}

template <class T>
void BlockDiffusion<T>::restore(const std::map<std::string, double>& state) {
  for (std::size_t l = 0; l < levels; ++l) {
    const auto low = state.find("clip_low_" + label(l)), high = state.find("clip_high_" + label(l));
    if (low != state.end() && high != state.end()) clip_[l] = {low->second, high->second};
  }
}

template class BlockDiffusion<float>;
template class BlockDiffusion<bf16>;
template class BlockDiffusion<fp16>;
template class BlockDiffusion<double>;

}  // namespace tern::objective
