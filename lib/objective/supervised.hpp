/// Supervised training on conversations: next-token prediction of what the assistant wrote. Several
/// conversations stand in a row (data/chat_source.hpp); each has positions of its own from 0 and
/// sees itself alone, causally, so that its loss and gradients are those it has in a row alone. The
/// loss is the mean over the learned tokens of the whole optimizer step, of all ranks.
///
/// Where every row of a micro-step holds one conversation, the pattern is plain causal, for which
/// GPUs have faster kernels: padding behind it sees it, but nothing is scored or seen there.
#pragma once
#include "objective/objective.hpp"
#include "objective/staging.hpp"

namespace tern::objective {

template <class T>
class Supervised : public Objective<T> {
  using A = Accumulate<T>;

 public:
  Supervised(const deck::Deck& deck, const Shape& shape, Arena& arena);

  Prepared<T> prepare(const ops::Context&, const data::Batch&, std::size_t slot,
                      bool evaluating) override;
  ops::HeadOptions head() const override { return head_; }

  std::size_t sums() const override { return 3; }
  bool wants_best() const override { return true; }
  void tally(std::size_t, const std::vector<double>& losses, const std::vector<std::int32_t>& best,
             std::vector<double>& sums) override;
  /// val/accuracy: the share of the tokens that are the likeliest where they stand.
  Score conclude(const std::vector<double>& sums, bool) override;

 private:
  void lay_out(const data::Batch& batch);
  ops::Pattern pattern(const Device& space, std::size_t slot);

  ops::HeadOptions head_;
  // The batch prepared last: positions (B*T); the rows that have a target, and these (M).
  std::vector<std::int32_t> places_, learned_, wanted_, sorted_;
  ops::SpanTable table_;
  bool shared_ = false;  // whether some row holds several conversations

  Staging<std::int32_t> inputs_, order_, positions_, rows_, targets_;
  Staging<ops::KeySpans> spans_;
  Staging<ops::SpanHull> hulls_;
  Vector<A> weights_;  // the most that are scored
};

}  // namespace tern::objective
