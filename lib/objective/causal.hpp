/// Next-token prediction: every token predicts its successor; the loss is the mean over all tokens.
#pragma once
#include "objective/objective.hpp"
#include "objective/staging.hpp"
#include "objective/window.hpp"

namespace tern::objective {

template <class T>
class Causal : public Objective<T> {
  using A = Accumulate<T>;

 public:
  Causal(const deck::Deck& deck, const Shape& shape, Arena& arena)
      : head_{deck.objective.z_loss, static_cast<std::size_t>(deck.model.vocabulary),
              deck.model.logit_cap},
        inputs_("inputs", shape, shape.batch * shape.tokens, arena),
        targets_("targets", shape, shape.batch * shape.tokens, arena),
        order_("token order", shape, shape.batch * shape.tokens, arena),
        window_(deck.model, shape, arena),
        weights_(arena.vector<A>("loss weights", Term::data, shape.batch * shape.tokens)) {}

  Prepared<T> prepare(const ops::Context& context, const data::Batch& batch, std::size_t slot,
                      bool evaluating) override {
    data::sort_rows_by_token(batch.inputs, sorted_);
    const double tokens = static_cast<double>(batch.step.predicted());
    Kokkos::deep_copy(context.space, weights_, evaluating ? A(1) : static_cast<A>(1 / tokens));
    scored_ = std::count_if(batch.targets.begin(), batch.targets.end(),
                            [](std::int32_t target) { return target >= 0; });
    const auto inputs = inputs_.copy(context.space, batch.inputs, slot);
    const auto order = order_.copy(context.space, sorted_, slot);
    return {{inputs, order},
            window_.pattern(context.space, batch.step_number, slot, evaluating),
            {{}, targets_.copy(context.space, batch.targets, slot)},
            weights_,
            {}};
  }

  ops::HeadOptions head() const override { return head_; }

  std::size_t sums() const override { return 2; }
  void accumulate(std::size_t, const std::vector<double>& losses, const std::vector<std::int32_t>&,
                  std::vector<double>& sums) override {
    for (const double loss : losses) sums[0] += loss;
    sums[1] += static_cast<double>(scored_);
  }
  Score finalize(const std::vector<double>& sums, bool) override {
    return {sums[0] / sums[1], static_cast<std::int64_t>(sums[1]), {}};
  }

 protected:
  /// Tokens with a target in the latest prepared batch.
  double scored() const { return static_cast<double>(scored_); }

 private:
  ops::HeadOptions head_;
  Staging<std::int32_t> inputs_, targets_, order_;
  WindowMask window_;
  Vector<A> weights_;
  std::vector<std::int32_t> sorted_;
  std::ptrdiff_t scored_ = 0;
};

}  // namespace tern::objective
