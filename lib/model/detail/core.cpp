#include "model/detail/core.hpp"

#include "parameters/full_sharding.hpp"

namespace tern::model::detail {

template <class T>
void Core<T>::prepare(const ops::Context& context) const {
  block.attention.prepare(context);
}

// ---- buffers of a pass ----

template <class T>
typename Block<T>::Saved Core<T>::saved(std::size_t slot, std::size_t place,
                                        const Sequences& of) const {
  if (!saved_.empty()) return saved_[at(slot, place)];
  typename Block<T>::Saved result = shared_;
  if (!inputs_.empty()) result.input = inputs_[at(slot, place)];
  return of.batch == options.batch && of.tokens == options.tokens ? result
                                                                  : block.narrow(result, of);
}

template <class T>
Matrix<T> Core<T>::output_of(std::size_t slot, std::size_t place, const Sequences& of) const {
  if (recursion.by_block()) return recursion.output(of.rows());
  const std::size_t next = place + 1;
  if (!inputs_.empty() && connections.enter(next)) return connections.stream(next);
  if (inputs_.empty() || next % layers() == 0) return final_of(slot, place / layers(), of).input;
  return inputs_[at(slot, next)];
}

/// Few different numbers of rows, in whole tiles, have few products to find algorithms for.
template <class T>
Subset<T> Core<T>::subset(std::size_t slot, std::size_t place, const Scored& scored) const {
  const std::size_t M = scored.rows.extent(0), N = sequences().rows();
  if (!narrows_ || place + 1 < places() || M == 0) return {};
  constexpr std::size_t tile = 128, sizes = 64;
  const std::size_t unit = std::max(tile, N / sizes / tile * tile);
  const std::size_t padded = std::min(N, (M + unit - 1) / unit * unit);
  return {scored.rows, narrow_rows(finals_[slot].input, padded)};
}

/// In evaluation passes share the blocks' buffers, except the states of several passes, which
/// outlive a pass.
template <class T>
typename Core<T>::Final Core<T>::final_of(std::size_t slot, std::size_t result, const Sequences& of,
                                          const Scored& scored) const {
  if (!finals_.empty()) {
    Final final = finals_[slot * results() + result];
    const Subset<T> some = subset(slot, places() - 1, scored);
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
void Core<T>::need(const ops::Context& context, std::size_t place) const {
  if (full_sharding) full_sharding->need(context, place % layers());
}

template <class T>
Stream<T> Core<T>::forward(const ops::Context& context, std::size_t slot, std::size_t place,
                           const Sequences& of, const typename Block<T>::Attend& attend,
                           const BlockDropout& dropout, Stream<T> stream,
                           const Scored& scored) const {
  const typename Block<T>::Saved kept = saved(slot, place, of);
  const Subset<T> some = subset(slot, place, scored);
  const Matrix<T> output = some.wanted() ? some.stream : output_of(slot, place, of);
  need(context, place);
  if (place == 0) common.links.from_previous(context, kept.input);
  if (recursion.by_block())
    recursion.enter_block(context, place % layers(), place / layers(), at(slot, place), kept.input);
  connections.before(context, place, inputs_, kept.input);
  Stream<T> result = block.forward(context, parameters_of(place), kept, attend, dropout,
                                   std::move(stream), output, of, some);
  // The next block makes pending sums itself if it directly follows.
  if ((place + 1) % layers() == 0 || recursion.by_block() || connections.any())
    result.settle(context);
  connections.after(context, place, output);
  if (block.has_experts()) block.experts.tally(context, kept.experts, place);
  if (recursion.by_block()) recursion.leave_block(context, place / layers(), of.rows());
  if (place + 1 == layers()) common.links.to_next(context, output);
  return result;
}

template <class T>
void Core<T>::backward(const ops::Context& context, std::size_t slot, std::size_t place,
                       const MicroBatch<T>& micro, const Mask& mask, const BlockDropout& dropout,
                       StreamGradient<T>& gradient, WeightGradients<T>& weights) const {
  const std::size_t pass = place / layers(), layer = place % layers();
  if (full_sharding) full_sharding->begin_gradients(context, layer);
  if (recursion.by_block())
    Kokkos::deep_copy(context.space, gradient.rows, recursion.output_gradient(pass));
  connections.add_gradient(context, place, inputs_, gradient.rows);
  if (recursion.by_block() || connections.change_gradient(place)) gradient.by_norm = false;
  const typename Block<T>::Saved kept = saved(slot, place, sequences());
  block.backward(context, parameters_of(place), kept, mask, dropout, micro.balanced, gradient,
                 weights, subset(slot, place, micro.scored));
  values.backward(context, layer, micro.rows, options.tokens, block.attention.dqkv(),
                  kept.attention.result);
  connections.backward(context, place, inputs_, gradient.rows);
  if (recursion.by_block())
    recursion.backward_block(context, layer, pass, at(slot, place), gradient.rows);
  if (full_sharding) full_sharding->end_gradients(context, layer);
}

template <class T>
Matrix<const T> Core<T>::finish(const ops::Context& context, std::size_t slot, std::size_t result,
                                const Sequences& of, const Scored& scored) const {
  const Final final = final_of(slot, result, of, scored);
  if (recursion.by_block())
    Kokkos::deep_copy(context.space, final.input, recursion.answer(of.rows()));
  if (share().last()) norm.forward(context, final_norm, final.saved, final.input, {final.output});
  return final.output;
}

template <class T>
Matrix<const T> Core<T>::advance(const ops::Context& context, std::size_t slot, std::size_t step,
                                 const Sequences& of, const Run& run, const Scored& scored) const {
  const std::size_t now = slot_of(slot, step), before = slot_of(slot, step > 0 ? step - 1 : 0);
  Stream<T> stream(common.sums, saved(now, 0, of).input);
  if (recursion.by_block()) {
    for (std::size_t layer = 0; layer < layers(); ++layer)
      for (std::size_t pass = 0; pass < passes(); ++pass)
        stream = run(pass * layers() + layer, std::move(stream));
    return finish(context, now, 0, of, scored);
  }
  const std::size_t last = passes() - 1;
  const auto finished = [&](std::size_t of_slot, std::size_t pass) {
    return Matrix<const T>(final_of(of_slot, pass, of).output);
  };
  Matrix<const T> result;
  for (std::size_t pass = 0; pass <= last; ++pass) {
    // The previous step's states are read in place, before this step's passes overwrite them.
    if (recursion.recursive())
      recursion.enter(context, step, pass, finished(before, last),
                      pass > 0 ? finished(now, pass - 1) : finished(before, last - 1),
                      saved(now, pass * layers(), of).input);
    for (std::size_t layer = 0; layer < layers(); ++layer)
      stream = run(pass * layers() + layer, std::move(stream));
    result = finish(context, now, pass, of, scored);
  }
  return result;
}

template class Core<float>;
template class Core<double>;
template class Core<bf16>;
template class Core<fp16>;

}  // namespace tern::model::detail
