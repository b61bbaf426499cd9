#include "campaign/training/step.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "campaign/training/state.hpp"

namespace tern::campaign {
namespace {

template <class T>
Vector<Accumulate<T>> sum_of(const workload::Workload<T>& w, std::size_t part, std::size_t slot) {
  return Vector<Accumulate<T>>(w.loss_sums.data() + part * w.loss_sums.extent(1) + slot, 1);
}

/// Forward and backward of the micro-batches of a step.
template <class T>
class AccumulationSteps {
  using A = Accumulate<T>;

 public:
  /// `balance`: weight of a micro-batch's router loss.
  AccumulationSteps(workload::Workload<T>& w, double balance, double loss_scale,
                    profile::Phases& phases)
      : w_(w),
        balance_(balance * loss_scale),
        head_(w.objective->head()),
        phases_(phases),
        in_flight_(w.model.in_flight()),
        weights_(w.model.weight_gradients()) {
    head_.gradient_scale = loss_scale;
  }

  /// Forward and backward, for each step of a recursive model; gradients accumulate.
  void run(const data::Batch& batch, std::size_t micro, const ops::DropoutKey& dropout) {
    start(batch, micro, dropout);
    for (std::size_t step = 0; step < w_.objective->steps(); ++step) {
      advance(micro, step);
      const auto timed = phases_.scope(profile::Phase::backward);
      backward(micro, step);
    }
    embed_backward(micro);
  }

  // The parts of run() for a model of one step. At most TransformerOptions::in_flight micro-batches
  // are between them, in order.
  void forward(const data::Batch& batch, std::size_t micro, const ops::DropoutKey& dropout) {
    start(batch, micro, dropout);
    advance(micro, 0);
  }
  void backward(std::size_t micro) {
    {
      const auto timed = phases_.scope(profile::Phase::backward);
      backward(micro, 0);
    }
    embed_backward(micro);
  }
  /// Gradients of weights that backward() has left for later.
  void run_weight_gradients() {
    const auto timed = phases_.scope(profile::Phase::backward);
    weights_.run_later(w_.context);
  }

 private:
  struct InFlight {
    objective::Prepared<T> prepared;
    model::MicroBatch<T> given;
    bool empty = false;  // no row, hence nothing for experts to balance
  };
  InFlight& at(std::size_t micro) { return in_flight_[micro % in_flight_.size()]; }

  void start(const data::Batch& batch, std::size_t micro, const ops::DropoutKey& dropout) {
    InFlight& now = at(micro);
    now.empty = batch.samples.empty();
    {
      const auto timed = phases_.scope(profile::Phase::data);
      now.prepared = w_.objective->prepare(w_.context, batch, micro, false);
      now.given = {.rows = now.prepared.rows,
                   .pattern = now.prepared.pattern,
                   .scored = now.prepared.scored,
                   .dropout = dropout,
                   .slot = micro % in_flight_.size(),
                   .first = micro < in_flight_.size()};
    }
    const auto timed = phases_.scope(profile::Phase::forward);
    w_.model.embed(w_.context, now.given);
  }
  void advance(std::size_t micro, std::size_t step) {
    const auto timed = phases_.scope(profile::Phase::forward);
    w_.model.advance(w_.context, at(micro).given, step);
  }
  void backward(std::size_t micro, std::size_t step) {
    const ops::Context& context = w_.context;
    auto& [prepared, given, empty] = at(micro);
    const Vector<A> losses(w_.losses.data(), prepared.scored.targets.extent(0));
    const Vector<const A> weights =
        step == 0 ? prepared.weights : w_.objective->weights_of(context, step, prepared, losses);
    if (w_.balances.extent(0) > 0 && !empty)
      given.balanced =
          w_.model.balance(context, balance_, Vector<A>(w_.balances.data() + micro, 1));
    w_.model.loss_backward(context, given, head_, weights, losses, step);
    const std::size_t slot = micro * w_.objective->steps() + step;
    ops::weighted_sum<A>(context, losses, weights, sum_of(w_, 0, slot));
    for (std::size_t part = 0; part < prepared.parts.size(); ++part)
      if (prepared.parts[part].step == step)
        ops::weighted_sum<A>(context, losses, prepared.parts[part].weights,
                             sum_of(w_, 1 + part, slot));
    w_.model.backward(context, given, weights_, step);
  }
  void embed_backward(std::size_t micro) {
    const auto timed = phases_.scope(profile::Phase::backward);
    w_.model.embed_backward(w_.context, at(micro).given);
  }

  workload::Workload<T>& w_;
  double balance_;
  ops::HeadOptions head_;
  profile::Phases& phases_;
  std::vector<InFlight> in_flight_;
  model::WeightGradients<T> weights_;
};

/// 1F1B schedule (Narayanan et al. 2021, section 2.2): a stage k stages before the last runs k
/// forward passes, then forward and backward in turns; it keeps at most k + 1 micro-batches in
/// flight. Where the model leaves the gradients of weights for later, those of a micro-batch follow
/// the next one's forward, and the last one's come at the end: the stage before waits for neither
/// (Qi et al., arXiv 2401.10241, "ZB-H1").
template <class T, class Read, class DropoutOf>
void run_pipeline(workload::Workload<T>& w, std::size_t count,
                  AccumulationSteps<T>& accumulation_steps, const Read& read,
                  const DropoutOf& dropout_of) {
  const model::ModelShard& share = w.model.share();
  const std::size_t ahead = std::min(count, share.stages - 1 - share.stage);
  const auto backward = [&](std::size_t micro) {
    if (micro > 0 && micro + 1 < count) accumulation_steps.run_weight_gradients();
    accumulation_steps.backward(micro);
  };
  for (std::size_t micro = 0; micro < count; ++micro) {
    accumulation_steps.forward(read(), micro, dropout_of(micro));
    if (micro >= ahead)
      backward(micro - ahead);
    else
      w.model.settle(w.context);  // at once: the next stage has nothing to send yet
  }
  for (std::size_t micro = count - ahead; micro < count; ++micro) backward(micro);
  w.model.settle(w.context);
  accumulation_steps.run_weight_gradients();
}

/// Row sums of a small device matrix, computed on the host.
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

/// Losses of the step, summed over micro-batches and ranks. `of_all`: micro-batches of all ranks.
template <class T>
void take_losses(const StepContext<T>& c, std::size_t micro_batches, double of_all,
                 StepResult& result) {
  using A = Accumulate<T>;
  const workload::Workload<T>& w = c.workload;
  std::vector<double> sums = row_sums<A>(w.context, w.loss_sums);
  c.mesh.pipeline().broadcast(sums.data(), sums.size() * sizeof(double),
                              c.mesh.pipeline().size() - 1);
  if (w.balances.extent(0) > 0)
    sums.push_back(row_sums<A>(w.context, as_matrix(w.balances.data(), 1, micro_batches))[0]);
  c.mesh.data().all_reduce(sums.data(), sums.size(), comm::Sum::sum);
  if (w.balances.extent(0) > 0) {
    result.router_loss = sums.back() / of_all;
    sums.pop_back();
  }
  const Vector<std::uint32_t> saturated = w.model.saturated();
  if (saturated.size() > 0) {
    double count = row_sums<std::uint32_t>(w.context, as_matrix(saturated.data(), 1, 1))[0];
    c.mesh.world().all_reduce(&count, 1, comm::Sum::sum);
    result.saturated = count;
  }
  result.loss = sums[0] + w.objective->constant();
  result.parts.assign(sums.begin() + 1, sums.end());
}

}  // namespace

template <class T>
StepResult train_step(const StepContext<T>& c, const StepNumbers& numbers) {
  using A = Accumulate<T>;
  workload::Workload<T>& w = c.workload;
  StepResult result{};
  const auto read = [&] {
    const auto timed = c.phases.scope(profile::Phase::data);
    data::Batch batch = c.reader.next();
    result.wait_seconds += batch.wait_seconds;
    result.counts = batch.step;
    for (const std::uint64_t sample : batch.samples) result.samples_hash += sample_hash(sample);
    return batch;
  };
  const auto dropout_of = [&](std::size_t micro) {
    const std::size_t micro_of_all = micro * static_cast<std::size_t>(c.mesh.data().size()) +
                                     static_cast<std::size_t>(c.mesh.data().rank());
    return ops::DropoutKey{
        c.deck.model.dropout, static_cast<std::uint64_t>(c.deck.campaign.seed),
        static_cast<std::uint64_t>(numbers.step), 0,
        static_cast<std::uint32_t>(micro_of_all * c.layout.per_rank * c.layout.tokens)};
  };
  w.optimizer->zero_gradients(w.context);
  Kokkos::deep_copy(w.context.space, w.loss_sums, A(0));
  Kokkos::deep_copy(w.context.space, w.balances, A(0));
  Kokkos::deep_copy(w.context.space, w.model.saturated(), 0u);
  const std::size_t micro_batches = c.layout.micro_batches(numbers.step - 1);
  const double of_all = c.layout.filled_micro_batches(numbers.step - 1);
  AccumulationSteps<T> accumulation_steps(w, c.deck.model.router_loss / of_all, numbers.loss_scale,
                                          c.phases);
  if (w.model.share().stages == 1)
    for (std::size_t micro = 0; micro < micro_batches; ++micro)
      accumulation_steps.run(read(), micro, dropout_of(micro));
  else
    run_pipeline(w, micro_batches, accumulation_steps, read, dropout_of);
  {
    const auto timed = c.phases.scope(profile::Phase::communication);
    w.optimizer->reduce_gradients(w.context);
  }
  {
    const auto timed = c.phases.scope(profile::Phase::optimizer);
    const auto outcome =
        w.optimizer->update(w.context, numbers.rate, numbers.updates + 1, numbers.loss_scale);
    result.gradient_norm = outcome.gradient_norm;
    result.applied = outcome.applied;
  }
  const auto timed = c.phases.scope(profile::Phase::communication);
  w.optimizer->gather_parameters(w.context);
  take_losses(c, micro_batches, of_all, result);
  return result;
}

template StepResult train_step(const StepContext<float>&, const StepNumbers&);
template StepResult train_step(const StepContext<bf16>&, const StepNumbers&);
template StepResult train_step(const StepContext<fp16>&, const StepNumbers&);

}  // namespace tern::campaign
