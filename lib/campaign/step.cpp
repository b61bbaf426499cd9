#include "campaign/step.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "campaign/state.hpp"

namespace tern::campaign {
namespace {

template <class T>
Vector<Accumulate<T>> sum_of(const plan::Workload<T>& w, std::size_t part, std::size_t slot) {
  return Vector<Accumulate<T>>(w.loss_sums.data() + part * w.loss_sums.extent(1) + slot, 1);
}

/// Forward and backward of one micro-step, step by step of a recursive model; gradients are added
/// up.
template <class T>
void micro_step(plan::Workload<T>& w, const data::Batch& batch, std::size_t micro,
                const ops::DropoutKey& dropout, Phases& phases) {
  using A = Accumulate<T>;
  const ops::Context& context = w.context;
  const auto prepared = [&] {
    const auto timed = phases.scope(Phase::data);
    return w.objective->prepare(context, batch, micro, false);
  }();
  {
    const auto timed = phases.scope(Phase::forward);
    w.recursion.embed(context, prepared.rows, dropout);
  }
  const Vector<A> losses(w.losses.data(), prepared.scored.targets.extent(0));
  Vector<const A> weights = prepared.weights;
  for (std::size_t step = 0; step < w.objective->steps(); ++step) {
    {
      const auto timed = phases.scope(Phase::forward);
      w.recursion.advance(context, prepared.pattern, dropout);
    }
    const auto timed = phases.scope(Phase::backward);
    if (step > 0) weights = w.objective->weights_of(context, step, prepared, losses);
    w.model.loss_backward(context, w.objective->head(), prepared.scored, weights, losses);
    const std::size_t slot = micro * w.objective->steps() + step;
    ops::weighted_sum<A>(context, losses, weights, sum_of(w, 0, slot));
    for (std::size_t part = 0; part < prepared.parts.size(); ++part)
      if (prepared.parts[part].step == step)
        ops::weighted_sum<A>(context, losses, prepared.parts[part].weights,
                             sum_of(w, 1 + part, slot));
    w.recursion.backward(context, prepared.pattern, dropout);
  }
  const auto timed = phases.scope(Phase::backward);
  w.recursion.embed_backward(context, prepared.rows);
}

/// Sums over the columns of a small device matrix, on the host.
template <class A>
std::vector<double> row_sums(const ops::Context& context, Matrix<const A> values) {
  std::vector<double> sums(values.extent(0), 0);
  Kokkos::View<A**, Kokkos::LayoutRight, Kokkos::HostSpace> copy("sums", values.extent(0),
                                                                 values.extent(1));
  Kokkos::deep_copy(context.space, copy, values);
  context.fence("sums");
  for (std::size_t i = 0; i < copy.extent(0); ++i)
    for (std::size_t j = 0; j < copy.extent(1); ++j) sums[i] += static_cast<double>(copy(i, j));
  return sums;
}

}  // namespace

template <class T>
StepResult train_step(plan::Workload<T>& w, const deck::Deck& deck, const plan::Layout& layout,
                      data::Reader& reader, comm::Group& group, Phases& phases, std::int64_t step,
                      std::int64_t updates, double rate) {
  using A = Accumulate<T>;
  StepResult result{};
  ops::DropoutKey dropout{deck.model.dropout, static_cast<std::uint64_t>(deck.campaign.seed),
                          static_cast<std::uint64_t>(step), 0, 0};
  const std::size_t rows = layout.per_rank * layout.tokens;
  w.optimizer->zero_gradients(w.context);
  Kokkos::deep_copy(w.context.space, w.loss_sums, A(0));
  for (std::size_t micro = 0; micro < layout.accumulation; ++micro) {
    const data::Batch batch = [&] {
      const auto timed = phases.scope(Phase::data);
      return reader.next();
    }();
    result.wait_seconds += batch.wait_seconds;
    result.counts = batch.step;
    for (const std::uint64_t sample : batch.samples) result.samples_hash += sample_hash(sample);
    const std::size_t micro_of_all =
        micro * static_cast<std::size_t>(group.size()) + static_cast<std::size_t>(group.rank());
    dropout.first_row = static_cast<std::uint32_t>(micro_of_all * rows);
    micro_step(w, batch, micro, dropout, phases);
  }
  {
    const auto timed = phases.scope(Phase::communication);
    w.optimizer->reduce_gradients(w.context);
  }
  {
    const auto timed = phases.scope(Phase::optimizer);
    const auto outcome = w.optimizer->update(w.context, rate, updates + 1);
    result.gradient_norm = outcome.gradient_norm;
    result.applied = outcome.applied;
  }
  const auto timed = phases.scope(Phase::communication);
  w.optimizer->gather_parameters(w.context);
  std::vector<double> sums = row_sums<A>(w.context, w.loss_sums);
  group.all_reduce(sums.data(), sums.size(), comm::Sum::sum);
  result.loss = sums[0] + w.objective->constant();
  result.parts.assign(sums.begin() + 1, sums.end());
  return result;
}

template StepResult train_step(plan::Workload<float>&, const deck::Deck&, const plan::Layout&,
                               data::Reader&, comm::Group&, Phases&, std::int64_t, std::int64_t,
                               double);
template StepResult train_step(plan::Workload<bf16>&, const deck::Deck&, const plan::Layout&,
                               data::Reader&, comm::Group&, Phases&, std::int64_t, std::int64_t,
                               double);

}  // namespace tern::campaign
