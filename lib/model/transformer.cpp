#include "model/transformer.hpp"

#include "base/error.hpp"
#include "parameters/full_sharding.hpp"

namespace tern::model {

template <class T>
Sequences Transformer<T>::sequences_of(const MicroBatch<T>& micro) const {
  TERN_REQUIRE(micro.slot < stack_.options.in_flight, "micro-batch {} of {} in flight", micro.slot,
               stack_.options.in_flight);
  const Sequences made_for = stack_.sequences();
  if (micro.sequences.rows() == 0) return made_for;
  TERN_REQUIRE(!stack_.options.training, "only an evaluating transformer takes other rows");
  TERN_REQUIRE(micro.sequences.rows() <= made_for.rows(), "{} x {} rows, made for {} x {}",
               micro.sequences.batch, micro.sequences.tokens, made_for.batch, made_for.tokens);
  return micro.sequences;
}

template <class T>
Mask Transformer<T>::mask_of(const MicroBatch<T>& micro) const {
  return {sequences_of(micro), micro.pattern, micro.rows.positions};
}

// Dropout streams: 0 for the embedding, 2 p + 1 and 2 p + 2 for the branches of visit p of the
// whole model, counted over steps.

template <class T>
ops::DropoutKey Transformer<T>::embedding_key(const MicroBatch<T>& micro) const {
  const ops::DropoutKey& key = micro.dropout;
  TERN_REQUIRE(key.probability == 0 || (dropout_ && stack_.options.training),
               "dropout {} in a model made without it", key.probability);
  return key;
}

template <class T>
BlockDropout Transformer<T>::keys(const MicroBatch<T>& micro, std::size_t step,
                                  const detail::Visit& visit) const {
  const ops::DropoutKey base = embedding_key(micro);
  const auto key = [&](std::size_t branch) {
    ops::DropoutKey result = base;
    const std::size_t whole = step * stack_.visits().size() + stack_.first_layer + visit.kept;
    result.layer += static_cast<std::uint32_t>(2 * whole + branch);
    return result;
  };
  return {key(1), key(2), visit.kept > 0 ? key(0) : ops::DropoutKey()};
}

template <class T>
typename Block<T>::Attend Transformer<T>::attend(const ops::Context& context,
                                                 const MicroBatch<T>& micro,
                                                 std::size_t layer) const {
  return [this, &context, &micro, layer](const auto& parameters, const auto& saved,
                                         const MapInput<T>& input, Range sequences) {
    const Mask whole = mask_of(micro);
    const Range rows = whole.sequences.tokens * sequences;
    stack_.values.forward(context, layer, rows_of(micro.rows.tokens, rows), saved.qkv);
    stack_.block.attention.attend(context, parameters, saved, part_of(whole, sequences));
    linear::round_rows<T>(context, input);
  };
}

/// Recomputed blocks share their scales, and so do all blocks in evaluation.
template <class T>
ops::Context Transformer<T>::scaled(const ops::Context& context, const MicroBatch<T>& micro,
                                    std::size_t step) const {
  ops::Context result = context;
  if (!stack_.options.training || stack_.options.recompute) return result;
  if (!micro.first)
    result.scaling = ops::Scaling::earlier;
  else if (step >= stack_.options.connected)  // earlier steps have used the slot
    result.scaling = ops::Scaling::largest;
  return result;
}

// ---- forward ----

template <class T>
void Transformer<T>::embed(const ops::Context& context, const MicroBatch<T>& micro) const {
  const Sequences of = sequences_of(micro);
  TERN_REQUIRE(micro.rows.tokens.extent(0) == of.rows(), "{} tokens for {} rows",
               micro.rows.tokens.extent(0), of.rows());
  TERN_REQUIRE(micro.rows.positions.extent(0) == 0 || !stack_.embedding.positions.weight.data(),
               "named positions and learned ones");
  const ops::DropoutKey dropout = embedding_key(micro);
  if (micro.first && micro.slot == 0) stack_.shared.precision.refresh(context);
  if (!share().first()) return;
  settle(context);  // an unsent block output may occupy `to`
  const Matrix<T> to = stack_.saved(micro.slot, stack_.visits().front(), of).input;
  stack_.embedding.forward(context, stack_.shared.links, micro.rows.tokens, of.tokens, 0,
                           micro.rows.levels, to);
  if (dropout.probability > 0) ops::dropout<T>(context, dropout, to, {}, to);
  stack_.recursion.begin(context, to);
}

template <class T>
Matrix<const T> Transformer<T>::advance(const ops::Context& context, const MicroBatch<T>& micro,
                                        std::size_t step) const {
  const Sequences of = sequences_of(micro);
  const ops::Context of_pass = scaled(context, micro, step);
  const auto run = [&](const detail::Visit& visit, Stream<T> stream) {
    return stack_.forward(of_pass, stack_.slot_of(micro.slot, step), visit, of,
                          attend(context, micro, visit.layer), keys(micro, step, visit),
                          std::move(stream), micro.scored);
  };
  return stack_.advance(context, micro.slot, step, of, run, micro.scored);
}

/// Finished rows that are scored: all, or a subset.
template <class T>
Matrix<const T> Transformer<T>::pick(const ops::Context& context, const MicroBatch<T>& micro,
                                     std::size_t step) const {
  const Matrix<T> finished = stack_
                                 .final_of(stack_.slot_of(micro.slot, step), stack_.results() - 1,
                                           sequences_of(micro), micro.scored)
                                 .output;
  const std::size_t M = micro.scored.rows.extent(0);
  if (M == 0) return finished;
  TERN_REQUIRE(M <= stack_.options.scored, "{} rows to score, made for {}", M,
               stack_.options.scored);
  if (stack_.computes_scored_only()) return narrow_rows(finished, M);
  const Matrix<T> picked = narrow_rows(stack_.picked, M);
  ops::gather_rows<T>(context, micro.scored.rows, finished, picked);
  return picked;
}

template <class T>
void Transformer<T>::loss(const ops::Context& context, const MicroBatch<T>& micro,
                          const ops::HeadOptions& options, Vector<A> losses,
                          Vector<std::int32_t> best, std::size_t step) const {
  // Block outputs are sent with or before the losses; without losses, here.
  if (micro.scored.targets.extent(0) == 0) return settle(context);
  const Matrix<const T> rows = share().last() ? pick(context, micro, step) : Matrix<const T>();
  stack_.head.loss(context, stack_.shared.links, options, rows, micro.scored.targets, losses, best);
}

template <class T>
void Transformer<T>::logits(const ops::Context& context, std::size_t first_row,
                            Matrix<T> result) const {
  const Matrix<const T> all = finished(stack_.results() - 1, stack_.options.connected - 1);
  const std::size_t rows = stack_.sequences().rows(), D = stack_.size.D;
  TERN_REQUIRE(first_row + result.extent(0) <= rows, "rows {} to {} of {}", first_row,
               first_row + result.extent(0), rows);
  stack_.logits_of(context, Matrix<const T>(all.data() + first_row * D, result.extent(0), D),
                   result);
}

// ---- backward ----

template <class T>
void Transformer<T>::loss_backward(const ops::Context& context, const MicroBatch<T>& micro,
                                   const ops::HeadOptions& options, Vector<const A> weights,
                                   Vector<A> losses, std::size_t step) const {
  TERN_REQUIRE(stack_.options.training, "backward of a transformer made for evaluation");
  if (!share().last())
    return stack_.shared.links.from_next(context, stack_.last_gradient(micro.slot));
  const Scored& scored = micro.scored;
  const std::size_t M = scored.targets.extent(0), N = stack_.sequences().rows();
  const ScoredRows<T> some = stack_.last_scored_rows(micro.slot, scored);
  const bool in_place = M == N || some.wanted();
  const Matrix<T> dx = in_place ? narrow_rows(dfinished(step), M) : narrow_rows(stack_.dpicked, M);
  if (M > 0)
    stack_.head.loss_backward(context, stack_.shared.links, options, pick(context, micro, step),
                              scored.targets, weights, losses, dx);
  if (!in_place)
    ops::scatter_rows<T>(context, scored.rows, dx, dfinished(step));
  else if (some.padded() > M)
    Kokkos::deep_copy(context.space, tern::rows_of(dfinished(step), {M, some.padded() - M}),
                      T(0.0f));
}

/// Gradient of the stream, or of a recursive model's answer, from that of the visit's result.
template <class T>
void Transformer<T>::norm_backward(const ops::Context& context, const MicroBatch<T>& micro,
                                   std::size_t step, const detail::Visit& visit) const {
  const auto final = stack_.final_of(stack_.slot_of(micro.slot, step), *visit.result,
                                     stack_.sequences(), micro.scored);
  const Matrix<T> dresult = narrow_rows(dfinished(step), final.input.extent(0));
  if (visit.out == detail::VisitOut::state) {
    const Matrix<T> dy = stack_.recursion.answer_gradient();
    return stack_.norm.backward(context, stack_.final_norm, final.saved, final.input, dresult,
                                stack_.recursion.carried(step) ? dy : Matrix<T>(), dy);
  }
  stack_.norm.backward(context, stack_.final_norm, final.saved, final.input, dresult, {},
                       stack_.last_gradient(micro.slot, micro.scored),
                       keys(micro, step, visit).feed_forward);
}

template <class T>
void Transformer<T>::recompute(const ops::Context& context, const MicroBatch<T>& micro,
                               std::size_t step, const detail::Visit& visit) const {
  // Where backward directly follows forward, the last block's activations are still valid.
  const bool latest = stack_.options.in_flight == 1 && step + 1 >= stack_.options.connected;
  if (latest && visit.kept == stack_.visits().back().kept) return;
  const auto kept = stack_.saved(stack_.slot_of(micro.slot, step), visit, stack_.sequences());
  static_cast<void>(stack_.block.forward(
      context, stack_.parameters_of(visit.layer), kept, attend(context, micro, visit.layer),
      keys(micro, step, visit), Stream<T>(stack_.shared.sums, kept.input), {}, stack_.sequences(),
      stack_.subset(micro.slot, visit, micro.scored)));
}

template <class T>
void Transformer<T>::visit_backward(const ops::Context& context, const MicroBatch<T>& micro,
                                    std::size_t step, const detail::Visit& visit,
                                    StreamGradient<T>& gradient,
                                    WeightGradients<T>& weights) const {
  stack_.unshard(context, visit.layer);
  if (stack_.options.recompute) recompute(context, micro, step, visit);
  stack_.backward(scaled(context, micro, step), stack_.slot_of(micro.slot, step), visit, micro,
                  mask_of(micro), keys(micro, step, visit), gradient, weights);
  if (visit.kept == 0) stack_.shared.links.to_previous(context, gradient.rows);
}

template <class T>
WeightGradients<T> Transformer<T>::weight_gradients() const {
  using When = typename WeightGradients<T>::When;
  if (stack_.options.weights_later) return WeightGradients<T>(When::later);
  return WeightGradients<T>(stack_.shared.sums.of_several_ranks() ? When::under_exchange
                                                                  : When::at_once);
}

template <class T>
void Transformer<T>::backward(const ops::Context& context, const MicroBatch<T>& micro,
                              WeightGradients<T>& weights, std::size_t step) const {
  const std::size_t connected = stack_.options.connected;
  if (step + 1 < connected) return;
  const std::size_t first = step < connected ? 0 : step;
  for (std::size_t s = step + 1; s-- > first;) step_backward(context, micro, s, weights);
}

template <class T>
void Transformer<T>::step_backward(const ops::Context& context, const MicroBatch<T>& micro,
                                   std::size_t step, WeightGradients<T>& weights) const {
  const std::vector<detail::Visit>& visits = stack_.visits();
  StreamGradient<T> gradient;
  stack_.recursion.begin_backward(context, step);
  for (auto visit = visits.rbegin(); visit != visits.rend(); ++visit) {
    if (visit->result) {
      // A result is also the next pass's input.
      if (visit != visits.rbegin())
        Kokkos::deep_copy(context.space, dfinished(step), stack_.dstream);
      if (share().last()) {
        if (visit->out == detail::VisitOut::result)
          stack_.recursion.add_carried(context, step, visit->pass, dfinished(step));
        norm_backward(context, micro, step, *visit);
      }
      gradient = stack_.output_gradient(micro.slot);
    }
    visit_backward(context, micro, step, *visit, gradient, weights);
    if (visit->in == detail::VisitIn::states)
      stack_.recursion.backward(context, step, visit->pass, gradient.rows);
  }
  stack_.recursion.end_backward(context, step);
}

template <class T>
void Transformer<T>::embed_backward(const ops::Context& context, const MicroBatch<T>& micro) const {
  stack_.recursion.end(context, stack_.dstream);
  if (!share().first()) return;
  const Matrix<T> dstream = stack_.first_gradient(micro.slot);
  const ops::DropoutKey dropout = embedding_key(micro);
  if (dropout.probability > 0) ops::dropout<T>(context, dropout, dstream, {}, dstream);
  stack_.embedding.backward(context, stack_.shared.links, micro.rows, stack_.sequences().tokens,
                            dstream);
}

template class Transformer<float>;
template class Transformer<double>;
template class Transformer<bf16>;
template class Transformer<fp16>;

}  // namespace tern::model
