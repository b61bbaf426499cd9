/// Next-token prediction: every token predicts its successor; the loss is the mean over all of
/// them.
#pragma once
#include "objective/objective.hpp"
#include "objective/staging.hpp"

namespace tern::objective {

template <class T>
class Causal : public Objective<T> {
  using A = Accumulate<T>;

 public:
  Causal(const deck::Deck& deck, const Shape& shape, Arena& arena)
      : head_{deck.objective.z_loss, static_cast<std::size_t>(deck.model.vocabulary)},
        training_weight_(static_cast<A>(1.0 / shape.rows_per_step)),
        inputs_("inputs", shape.slots, shape.batch * shape.tokens, arena),
        targets_("targets", shape.slots, shape.batch * shape.tokens, arena),
        order_("token order", shape.slots, shape.batch * shape.tokens, arena),
        weights_(arena.vector<A>("loss weights", Term::data, shape.batch * shape.tokens)) {}

  Prepared<T> prepare(const ops::Context& context, const data::Batch& batch, std::size_t slot,
                      bool evaluating) override {
    data::sort_rows_by_token(batch.inputs, sorted_);
    Kokkos::deep_copy(context.space, weights_, evaluating ? A(1) : training_weight_);
    return {inputs_.copy(context.space, batch.inputs, slot),
            targets_.copy(context.space, batch.targets, slot),
            order_.copy(context.space, sorted_, slot), weights_, ops::Pattern{}};
  }

  ops::HeadOptions head() const override { return head_; }

 private:
  ops::HeadOptions head_;
  A training_weight_;
  Staging<std::int32_t> inputs_, targets_, order_;
  Vector<A> weights_;
  std::vector<std::int32_t> sorted_;
};

}  // namespace tern::objective
