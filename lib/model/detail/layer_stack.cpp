#include "model/detail/layer_stack.hpp"

#include "parameters/full_sharding.hpp"

namespace tern::model::detail {

template <class T>
void LayerStack<T>::prepare(const ops::Context& context) const {
  block.attention.prepare(context);
}

// ---- buffers of a pass ----

template <class T>
typename Block<T>::Saved LayerStack<T>::saved(std::size_t slot, const Visit& visit,
                                              const Sequences& of) const {
  if (!saved_.empty()) return saved_[at(slot, visit)];
  typename Block<T>::Saved result = shared_;
  if (!inputs_.empty()) result.input = inputs_[at(slot, visit)];
  return of.batch == options.batch && of.tokens == options.tokens ? result
                                                                  : block.narrow(result, of);
}

template <class T>
Matrix<T> LayerStack<T>::output_of(std::size_t slot, const Visit& visit,
                                   const Sequences& of) const {
  if (visit.out == VisitOut::state) return recursion.output(of.rows());
  if (inputs_.empty() || visit.out == VisitOut::result) return final_of(slot, visit.pass, of).input;
  if (connections.enter(visit.layer + 1)) return connections.stream(visit.layer + 1);
  return inputs_[at(slot, visit) + 1];
}

/// Few different numbers of rows, in whole tiles, have few products to find algorithms for.
template <class T>
ScoredRows<T> LayerStack<T>::last_scored_rows(std::size_t slot, const Scored& scored) const {
  const std::size_t M = scored.rows.extent(0), N = sequences().rows();
  if (!computes_scored_only_ || M == 0) return {};
  constexpr std::size_t tile = 128, sizes = 64;
  const std::size_t unit = std::max(tile, N / sizes / tile * tile);
  const std::size_t padded = std::min(N, (M + unit - 1) / unit * unit);
  return {scored.rows, narrow_rows(finals_[slot].input, padded)};
}

/// In evaluation passes share the blocks' buffers, except the states of several passes, which
/// outlive a pass.
template <class T>
typename LayerStack<T>::Final LayerStack<T>::final_of(std::size_t slot, std::size_t result,
                                                      const Sequences& of,
                                                      const Scored& scored) const {
  if (!finals_.empty()) {
    Final final = finals_[slot * results() + result];
    const ScoredRows<T> some = last_scored_rows(slot, scored);
    if (!some.wanted()) return final;
    return {some.stream, narrow_rows(final.output, some.padded()),
            norm.part(final.saved, {0, some.padded()})};
  }
  const std::size_t N = of.rows();
  const Matrix<T> state = results() == 1           ? shared_.normed_feed_forward
                          : result + 1 < results() ? latent_
                                                   : answer_;
  return {narrow_rows(shared_.input, N), narrow_rows(state, N),
          norm.part(shared_.norm_feed_forward, {0, N})};
}

// ---- a pass ----

template <class T>
void LayerStack<T>::unshard(const ops::Context& context, std::size_t layer) const {
  if (full_sharding) full_sharding->unshard(context, layer);
}

template <class T>
Stream<T> LayerStack<T>::forward(const ops::Context& context, std::size_t slot, const Visit& visit,
                                 const Sequences& of, const typename Block<T>::Attend& attend,
                                 const BlockDropout& dropout, Stream<T> stream,
                                 const Scored& scored) const {
  const typename Block<T>::Saved kept = saved(slot, visit, of);
  const ScoredRows<T> some = subset(slot, visit, scored);
  const Matrix<T> output = some.wanted() ? some.stream : output_of(slot, visit, of);
  unshard(context, visit.layer);
  if (visit.kept == 0) shared.links.from_previous(context, kept.input);
  if (visit.in == VisitIn::normed_states)
    recursion.enter_block(context, visit, at(slot, visit), kept.input);
  if (connections.any()) connections.before(context, visit.layer, inputs_, kept.input);
  Stream<T> result = block.forward(context, parameters_of(visit.layer), kept, attend, dropout,
                                   std::move(stream), output, of, some);
  if (visit.out != VisitOut::stream) result.settle(context);
  if (connections.any()) connections.after(context, visit.layer, output);
  if (block.has_experts()) block.experts.tally(context, kept.experts, visit.kept);
  if (visit.out == VisitOut::state) recursion.leave_block(context, visit, of.rows());
  if (visit.out == VisitOut::result) shared.links.to_next(context, output);
  return result;
}

template <class T>
void LayerStack<T>::backward(const ops::Context& context, std::size_t slot, const Visit& visit,
                             const MicroBatch<T>& micro, const Mask& mask,
                             const BlockDropout& dropout, StreamGradient<T>& gradient,
                             WeightGradients<T>& weights) const {
  if (full_sharding) full_sharding->begin_gradients(context, visit.layer);
  if (visit.out == VisitOut::state) {
    Kokkos::deep_copy(context.space, gradient.rows, recursion.output_gradient(visit));
    gradient.by_norm = false;
  }
  if (connections.any()) {
    connections.add_gradient(context, visit.layer, inputs_, gradient.rows);
    if (connections.change_gradient(visit.layer)) gradient.by_norm = false;
  }
  const typename Block<T>::Saved kept = saved(slot, visit, sequences());
  block.backward(context, parameters_of(visit.layer), kept, mask, dropout, micro.balanced, gradient,
                 weights, subset(slot, visit, micro.scored));
  values.backward(context, visit.layer, micro.rows, options.tokens, block.attention.dqkv(),
                  kept.attention.result);
  if (connections.any()) connections.backward(context, visit.layer, inputs_, gradient.rows);
  if (visit.in == VisitIn::normed_states)
    recursion.backward_block(context, visit, at(slot, visit), gradient.rows);
  if (full_sharding) full_sharding->end_gradients(context, visit.layer);
}

template <class T>
Matrix<const T> LayerStack<T>::finish(const ops::Context& context, std::size_t slot,
                                      const Visit& visit, const Sequences& of,
                                      const Scored& scored) const {
  const Final final = final_of(slot, *visit.result, of, scored);
  if (visit.out == VisitOut::state)
    Kokkos::deep_copy(context.space, final.input, recursion.answer(of.rows()));
  if (share().last()) norm.forward(context, final_norm, final.saved, final.input, {final.output});
  return final.output;
}

/// The previous step's states are read in place, before this step's passes overwrite them.
template <class T>
void LayerStack<T>::enter(const ops::Context& context, std::size_t slot, std::size_t step,
                          const Visit& visit, const Sequences& of) const {
  const std::size_t last = passes() - 1, now = slot_of(slot, step),
                    before = slot_of(slot, step > 0 ? step - 1 : 0);
  const auto state = [&](std::size_t of_slot, std::size_t pass) {
    return Matrix<const T>(final_of(of_slot, pass, of).output);
  };
  recursion.enter(context, step, visit.pass, state(before, last),
                  visit.pass > 0 ? state(now, visit.pass - 1) : state(before, last - 1),
                  saved(now, visit, of).input);
}

template <class T>
Matrix<const T> LayerStack<T>::advance(const ops::Context& context, std::size_t slot,
                                       std::size_t step, const Sequences& of, const Run& run,
                                       const Scored& scored) const {
  const std::size_t now = slot_of(slot, step);
  Stream<T> stream(shared.sums, saved(now, visits_.front(), of).input);
  Matrix<const T> result;
  for (const Visit& visit : visits_) {
    if (visit.in == VisitIn::states) enter(context, slot, step, visit, of);
    stream = run(visit, std::move(stream));
    if (visit.result) result = finish(context, now, visit, of, scored);
  }
  return result;
}

template class LayerStack<float>;
template class LayerStack<double>;
template class LayerStack<bf16>;
template class LayerStack<fp16>;

}  // namespace tern::model::detail
