/// Block diffusion (BD3-LM; Arriola et al., arXiv 2503.09573) and its hierarchical variant HDP.
///
/// Blocks are autoregressive; within a block, tokens masked with probability t are predicted all at
/// once. Loss of a block: E_t [1/t sum over masked tokens of -log p(x | x_t, earlier blocks)], an
/// upper bound on its negative log-likelihood (log-linear schedule; section 3). SUBS
/// parametrization: the mask token is never predicted, and unmasked tokens score nothing. The mask
/// token is the last one of &model vocabulary.
///
/// hierarchy = 'flat': one level, &objective block_length tokens per block. 'hdp': a clean
/// question, then a plan and an execution, two levels with their own blocks, times, clip intervals,
/// weights and losses; the training loss is plan_weight x mean loss over plan tokens +
/// execution_weight x mean loss over execution tokens. The validation loss is over all tokens, at
/// times in [1e-3, 1].
///
/// Clip interval (section 5): training draws t from [low, high], and each evaluation may choose the
/// interval, of width 0.5 to 0.9 in steps of 0.05, with the least variance of block losses. Since a
/// block's loss at time t does not depend on the interval, one evaluation at times over [1e-3, 1]
/// serves all of them: an interval's variance is that of the blocks with times in it.
#pragma once
#include "objective/detail/block_rows.hpp"
#include "objective/objective.hpp"
#include "objective/staging.hpp"

namespace tern::objective {

template <class T>
class BlockDiffusion : public Objective<T> {
  using A = Accumulate<T>;

 public:
  BlockDiffusion(const deck::Deck& deck, const Shape& shape, Arena& arena);

  Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                      bool evaluating) override;
  ops::HeadOptions head() const override { return head_; }
  std::vector<std::string> parts() const override;
  double per_token(double loss, const std::vector<double>& parts,
                   const data::Counts& counts) const override;

  std::size_t sums() const override;
  bool wants_best() const override { return true; }
  void accumulate(std::size_t, const std::vector<double>& losses,
                  const std::vector<std::int32_t>& best, std::vector<double>& sums) override;
  Score finalize(const std::vector<double>& sums, bool training) override;

  std::map<std::string, double> state() const override;
  void restore(const std::map<std::string, double>&) override;

 private:
  std::string label(std::size_t level) const;

  deck::Objective options_;
  std::uint64_t seed_;
  bool hierarchical_;
  ops::HeadOptions head_;
  detail::BlockRows rows_;
  std::array<detail::Clip, data::levels> clip_;
  data::Counts own_;  // the latest prepared batch's
  std::vector<std::int32_t> sorted_;
  std::vector<A> values_;

  Staging<std::int32_t> tokens_, order_, positions_, masked_, targets_;
  Staging<ops::KeySpans> spans_;
  Staging<ops::SpanHull> hulls_;
  Staging<A> weights_;
  // HDP only.
  std::unique_ptr<Staging<std::int32_t>> levels_, level_order_;
  std::vector<Staging<A>> part_weights_;
};

}  // namespace tern::objective
