/// Recursive refinement with deep supervision (after TRM, Jolicoeur-Martineau, arXiv 2510.04871, on
/// next-token prediction). A recursive model (model/transformer.hpp) answers S = &objective
/// supervision_steps times, each time from the previous answer; L_s is the mean loss per token of
/// answer s. The training loss is
///
///   sum_s w_s L_s - reward x mean over s >= 1 of (L_{s-1} - L_s) / L_{s-1},
///
/// or the sum of these improvements instead of their mean (reward_over), with w_s = weight_base^s, normalized to sum 1, and L_{s-1} not differentiated in the reward. The
/// improvement is computed per sequence and averaged, so that the loss does not depend on the
/// distribution of sequences over micro-batches and ranks.
///
/// Metrics: each step's loss, and refinement = (L_0 - L_{S-1}) / L_0. The validation loss is that
/// of the answer after &generation refine refinements, by default S - 1 as in training, so it
/// compares with other models'; outside training, losses after 0 to 2 S refinements are reported as
/// well.
#pragma once
#include "objective/causal.hpp"

namespace tern::objective {

template <class T>
class Refinement : public Causal<T> {
  using A = Accumulate<T>;

 public:
  Refinement(const deck::Deck& deck, const Shape& shape, Arena& arena);

  Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                      bool evaluating) override;
  std::size_t steps() const override { return shares_.size(); }
  Vector<const A> weights_of(const ops::Context&, std::size_t step, const Prepared<T>&,
                             Vector<const A> losses) override;
  std::vector<std::string> parts() const override;
  double constant() const override { return -all_rewards_; }
  std::map<std::string, double> figures(const std::vector<double>& parts) const override;
  double per_token(double, const std::vector<double>& parts, const data::Counts&) const override {
    return parts.back();
  }

  std::size_t evaluated_steps(bool training) const override;
  /// Tokens, then the sum of losses per step.
  std::size_t sums() const override { return 1 + evaluated_steps(false); }
  void accumulate(std::size_t step, const std::vector<double>& losses,
                  const std::vector<std::int32_t>&, std::vector<double>& sums) override;
  Score finalize(const std::vector<double>& sums, bool training) override;

 private:
  std::vector<double> shares_;   // w_s
  double all_rewards_, reward_;  // of all steps, of one
  std::size_t tokens_;           // per sequence
  std::size_t refined_;          // step whose answer counts
  double unit_ = 0;              // 1 / tokens of the optimizer step
  Vector<A> weights_;            // (N)
};

/// Answers before the one that counts: 0, or &generation refine.
std::size_t refinements(const deck::Deck& deck);

}  // namespace tern::objective
