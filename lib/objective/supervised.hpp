/// Supervised fine-tuning on conversations: next-token prediction of the assistant's tokens. A row
/// packs several conversations (data/chat_source.hpp); each has its own positions from 0 and
/// attends causally to itself only, so its loss and gradients are those in a row of its own. The
/// loss is the mean over the learned tokens of the whole optimizer step, over all ranks.
///
/// If every row of a micro-batch holds one conversation, the attention mask is plain causal, for
/// which GPUs have faster kernels: padding after it attends to it, but is neither scored nor
/// attended to.
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
  void accumulate(std::size_t, const std::vector<double>& losses,
                  const std::vector<std::int32_t>& best, std::vector<double>& sums) override;
  /// val/accuracy: fraction of learned tokens that are the argmax.
  Score finalize(const std::vector<double>& sums, bool) override;

 private:
  void lay_out(const data::Batch& batch);
  ops::Pattern pattern(const Device& space, std::size_t slot);

  ops::HeadOptions head_;
  // The latest prepared batch: positions (B*T); the rows that have a target, and their targets (M).
  std::vector<std::int32_t> places_, learned_, wanted_, sorted_;
  ops::SpanTable table_;
  bool shared_ = false;  // whether any row holds several conversations

  Staging<std::int32_t> inputs_, order_, positions_, rows_, targets_;
  Staging<ops::KeySpans> spans_;
  Staging<ops::SpanHull> hulls_;
  Vector<A> weights_;  // (maximum of scored rows)
};

}  // namespace tern::objective
