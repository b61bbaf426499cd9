#include "campaign/step.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "campaign/state.hpp"

namespace tern::campaign {
namespace {

/// Forward and backward of one micro-step; gradients are added up.
template <class T>
void micro_step(plan::Workload<T>& w, const data::Batch& batch, std::size_t slot,
                const ops::DropoutKey& dropout, Phases& phases) {
  const ops::Context& context = w.context;
  const auto prepared = w.objective->prepare(context, batch, slot, false);
  {
    const auto timed = phases.scope(Phase::forward);
    w.model.forward(context, prepared.inputs, prepared.pattern, dropout);
  }
  const auto timed = phases.scope(Phase::backward);
  w.model.loss_backward(context, w.objective->head(), prepared.targets, prepared.weights, w.losses);
  ops::weighted_sum<Accumulate<T>>(context, w.losses, prepared.weights,
                                   Kokkos::subview(w.loss_sums, Kokkos::make_pair(slot, slot + 1)));
  for (std::size_t layer = w.model.layers(); layer-- > 0;)
    w.model.block_backward(context, layer, prepared.pattern, dropout);
  w.model.embed_backward(context, prepared.inputs, prepared.order);
}

/// Sum of a small device array, on the host.
template <class A>
double sum_on_host(const ops::Context& context, Vector<const A> values) {
  HostVector<A> host(Kokkos::view_alloc(Kokkos::WithoutInitializing, "sums"), values.extent(0));
  Kokkos::deep_copy(context.space, host, values);
  context.fence("sums");
  double sum = 0;
  for (std::size_t i = 0; i < host.extent(0); ++i) sum += static_cast<double>(host(i));
  return sum;
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
  for (std::size_t micro = 0; micro < layout.accumulation; ++micro) {
    const data::Batch batch = [&] {
      const auto timed = phases.scope(Phase::data);
      return reader.next();
    }();
    result.wait_seconds += batch.wait_seconds;
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
  result.loss = sum_on_host<A>(w.context, w.loss_sums);
  group.all_reduce(&result.loss, 1, comm::Sum::sum);
  return result;
}

template <class T>
Evaluation evaluate(plan::Workload<T>& w, const deck::Deck& deck, const plan::Layout& layout,
                    const data::Shards& shards, comm::Group& group) {
  using A = Accumulate<T>;
  const std::size_t wanted = static_cast<std::size_t>(deck.evaluation.batches) * layout.per_rank;
  const std::size_t samples = std::min(wanted, shards.windows(layout.tokens));
  const std::size_t together = layout.per_rank * static_cast<std::size_t>(group.size());
  const std::size_t micro_steps = (samples + together - 1) / together;
  data::ReaderOptions options{layout.per_rank, layout.tokens};
  options.shuffle = false;
  data::Reader reader(shards, options, static_cast<std::size_t>(group.rank()),
                      static_cast<std::size_t>(group.size()), 0);
  ops::HeadOptions head = w.objective->head();
  head.z_loss = 0;  // a regulariser, not part of the likelihood
  double sum_and_count[2] = {0, 0};
  for (std::size_t micro = 0; micro < micro_steps; ++micro) {
    data::Batch batch = reader.next();
    for (std::size_t b = 0; b < batch.sequences; ++b)
      if (batch.samples[b] >= samples)  // the last micro-step may reach beyond the set
        std::fill_n(batch.targets.begin() + static_cast<std::ptrdiff_t>(b * layout.tokens),
                    layout.tokens, -1);
    const auto prepared = w.objective->prepare(w.context, batch, 0, true);
    w.model.forward(w.context, prepared.inputs, prepared.pattern);
    w.model.loss(w.context, head, prepared.targets, w.losses);
    const Vector<A> sum = Kokkos::subview(w.loss_sums, Kokkos::make_pair(0, 1));
    ops::weighted_sum<A>(w.context, w.losses, prepared.weights, sum);
    sum_and_count[0] += sum_on_host<A>(w.context, sum);
    sum_and_count[1] += static_cast<double>(
        std::count_if(batch.targets.begin(), batch.targets.end(), [](auto t) { return t >= 0; }));
  }
  group.all_reduce(sum_and_count, 2, comm::Sum::sum);
  return {sum_and_count[0] / sum_and_count[1], static_cast<std::int64_t>(sum_and_count[1])};
}

template StepResult train_step(plan::Workload<float>&, const deck::Deck&, const plan::Layout&,
                               data::Reader&, comm::Group&, Phases&, std::int64_t, std::int64_t,
                               double);
template StepResult train_step(plan::Workload<bf16>&, const deck::Deck&, const plan::Layout&,
                               data::Reader&, comm::Group&, Phases&, std::int64_t, std::int64_t,
                               double);
template Evaluation evaluate(plan::Workload<float>&, const deck::Deck&, const plan::Layout&,
                             const data::Shards&, comm::Group&);
template Evaluation evaluate(plan::Workload<bf16>&, const deck::Deck&, const plan::Layout&,
                             const data::Shards&, comm::Group&);

}  // namespace tern::campaign
