#include "plan/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "model/declare.hpp"
#include "parameters/parameters.hpp"
#include "plan/detail/devices.hpp"
#include "plan/detail/epochs.hpp"
#include "plan/detail/ranks.hpp"
#include "plan/devices.hpp"
#include "plan/measured_rate.hpp"
#include "plan/sizes.hpp"
#include "plan/training_rate.hpp"
#include "workload/storage.hpp"
#include "workload/workload.hpp"

namespace tern::plan {

namespace {

constexpr std::array terms{Term::parameters, Term::gradients, Term::optimizer, Term::activations,
                           Term::workspace,  Term::data,      Term::cache};

/// NCCL's buffers on a GPU, beyond what the run allocates: two to four ranks of H100 and H200
/// (2026-11-22 to 24) took 0.84 to 0.86 GiB more than one, stages of a pipeline 1.28.
std::size_t exchange_bytes(const comm::Extents& extents, const PlannedDevice& device) {
  constexpr double collectives = 0.85, messages = 0.43, gib = 1 << 30;
  if (!device.is_gpu() || extents.ranks() == 1) return 0;
  return static_cast<std::size_t>((collectives + (extents.pipeline > 1 ? messages : 0)) * gib);
}

/// A preset's per_rank is divided if there are more ranks than micro-batches in its global batch.
deck::Deck with_batch(deck::Deck deck, const workload::Layout& layout) {
  const auto per_rank = static_cast<std::int64_t>(layout.per_rank);
  if (per_rank < deck.batch.per_rank) deck.batch.preset = "none";
  deck.batch.per_rank = per_rank;
  if (!deck::counts_samples(deck.batch))
    deck.batch.global = static_cast<std::int64_t>(layout.global);
  return deck;
}

/// Plans for the device and the training data of `plan`.
template <class T>
void measure(const deck::Deck& deck, const comm::Mesh& mesh, Plan& plan) {
  const workload::Layout layout = workload::make_layout(deck, mesh.data().size(), plan.data);
  Arena arena;
  const workload::Workload<T> workload(deck, layout, mesh, arena);
  plan.layout = layout;
  plan.deck = with_batch(deck, layout);
  plan.total_bytes = arena.bytes();
  plan.exchange_bytes = exchange_bytes(mesh.extents(), plan.device);
  plan.largest_bytes = detail::largest(plan.bytes(), mesh.world());
  plan.memory.clear();
  for (const Term term : terms)
    if (const std::size_t bytes = arena.bytes(term); bytes > 0)
      plan.memory.emplace_back(term, bytes);
  std::int64_t counts[2] = {0, 0};  // this rank's parameters; parameters and states
  const auto states =
      workload.optimizer ? workload.optimizer->states() : std::vector<optimizer::State<T>>();
  for (const model::Parameter& p : workload.tree.parameters()) {
    if (!p.counted) continue;
    const auto count = static_cast<std::int64_t>(p.count);
    counts[0] += count;
    counts[1] += count;
    for (const auto& state : states)
      if (p.offset >= state.covered.first && p.offset < state.covered.end()) counts[1] += count;
  }
  mesh.replica().all_reduce(counts, 2, comm::Sum::sum);
  // A planning mesh has this rank's only, whose states are typical of the others'.
  plan.parameters = model::ParameterTree(model::declare(deck.model)).count();
  const double stored = static_cast<double>(counts[1]) / static_cast<double>(counts[0]);
  plan.active_parameters = active_parameters(deck.model, plan.parameters);
  plan.checkpoint_bytes = static_cast<std::size_t>(
      std::llround(stored * static_cast<double>(plan.parameters)) * std::int64_t{sizeof(float)});
}

void measure(const deck::Deck& deck, const comm::Mesh& mesh, Plan& plan) {
  workload::with_storage(deck, [&](auto zero) { measure<decltype(zero)>(deck, mesh, plan); });
}

/// The largest per_rank that fits the device with least free memory over all ranks. Given &batch
/// global, it divides global / data ranks; else powers of two are tried.
std::int64_t largest_batch(deck::Deck deck, const comm::Mesh& mesh, const PlannedDevice& device,
                           const data::SetSize& data) {
  const std::size_t free = detail::least(device.capacity().free_bytes, mesh.world());
  const auto room = static_cast<std::size_t>(0.94 * static_cast<double>(free));
  const std::int64_t ranks = mesh.data().size();
  std::int64_t share = deck.batch.global > 0 ? deck.batch.global / ranks : 0;
  if (deck::counts_samples(deck.batch))
    share = (static_cast<std::int64_t>(workload::step_rows(deck, data).most()) + ranks - 1) / ranks;
  std::int64_t best = 0;
  for (std::int64_t candidate = 1; candidate <= (share > 0 ? share : 4096); ++candidate) {
    if (share > 0 ? share % candidate != 0 : (candidate & (candidate - 1)) != 0) continue;
    deck.batch.per_rank = candidate;
    Plan plan;
    plan.device = device;
    plan.data = data;
    measure(deck, mesh, plan);
    if (plan.largest_bytes > room) break;  // ranks hold different states
    best = candidate;
  }
  if (best == 0)
    user_error(
        "not even one sequence of {} tokens per rank fits the {} free on the device; set "
        "&precision recompute = 'block', or make the model or its context smaller",
        deck.model.context, size_text(room));
  return best;
}

/// Zero steps and tokens for a deck that counts epochs, until its data are opened.
void count_tokens(Plan& plan) {
  plan.steps = plan.deck.campaign.epochs == 0 ? plan.deck.campaign.max_steps : 0;
  plan.tokens =
      plan.layout.steps.rows_in(static_cast<std::uint64_t>(plan.steps)) * plan.contents.tokens();
}

/// What an estimate is typical of: the precision that the device computes in, and the device.
std::string computed_on(const deck::Deck& deck, const PlannedDevice& device) {
  const detail::KnownDevice* known = device.data_sheet();
  if (deck::compute_of(deck.precision) == deck::Compute::fp8 && known &&
      known->tflops_fp8 <= known->tflops_bf16)
    return fmt::format("bf16 on {}, which has no units for fp8", known->name);
  return fmt::format("{} on {}", deck.precision.compute, device.name());
}

std::string source_of_estimate(const Plan& plan, const comm::Extents& extents) {
  const std::string assumed =
      plan.contents.assumed ? "; samples of full length assumed" : std::string();
  if (plan.device.timed())
    return fmt::format(
        "estimated for {} from {:.0f} GFLOP/s and {:.0f} GB/s, timed just now{}; within a factor "
        "of "
        "two or so{}",
        computed_on(plan.deck, plan.device), 1e3 * plan.device.rates()->tflops_fp32,
        1e3 * plan.device.rates()->terabytes, extents.ranks() > 1 ? ", per rank" : "", assumed);
  return fmt::format(
      "estimated, typical of {}{}; no bound{}", computed_on(plan.deck, plan.device),
      plan.device.nodes().count(extents.ranks()) > 1 ? ", assumed between nodes" : "", assumed);
}

/// Rate from the plan's row contents, for decks that train.
void estimate(Plan& plan, const comm::Extents& extents) {
  const deck::Deck& deck = plan.deck;
  if (!deck::trains(deck)) return;
  if (const auto rate = estimated_rate(deck, plan.layout, extents, plan.contents, plan.device))
    plan.rate = {*rate, source_of_estimate(plan, extents)};
  else if (deck.cost.peak_tflops > 0)
    plan.rate = {
        0.4e12 * deck.cost.peak_tflops * extents.ranks() / plan.flops_per_token,
        fmt::format("if 40% of {:.0f} TFLOP/s per device is reached", deck.cost.peak_tflops)};
}

}  // namespace

std::size_t active_parameters(const deck::Model& m, std::size_t parameters) {
  if (m.experts == 0) return parameters;
  const std::int64_t idle = m.experts - m.experts_per_token;
  return parameters - static_cast<std::size_t>(m.layers * idle * 3 * m.hidden * m.expert_hidden);
}

double flops_per_token(const deck::Deck& deck, std::size_t parameters) {
  const deck::Model& model = deck.model;
  const auto steps = static_cast<double>(deck::scored_steps(deck));
  const double passes = steps * static_cast<double>(model.inner_steps + 1);
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const auto values = static_cast<double>(model.value_embeddings * model.vocabulary *
                                          model.kv_heads * model.head_dim);  // looked up
  const double blocks = static_cast<double>(active_parameters(model, parameters)) -
                        (model.tie_embeddings ? 1 : 2) * head - values;
  const double attention = 12.0 * static_cast<double>(model.layers) *
                           static_cast<double>(model.heads * model.head_dim) *
                           static_cast<double>(model.context);
  return 6 * (passes * blocks + steps * head) + passes * attention;
}

std::optional<double> peak_tflops(const deck::Deck& deck, const PlannedDevice& device) {
  if (deck.cost.peak_tflops > 0) return deck.cost.peak_tflops;
  if (const detail::KnownDevice* known = device.data_sheet())
    return known->tflops(deck.precision.compute);
  return std::nullopt;
}

Plan plan_memory(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device,
                 const data::SetSize& data) {
  deck::Deck sized = deck;
  if (deck.batch.per_rank == 0) sized.batch.per_rank = largest_batch(deck, mesh, device, data);
  Plan plan;
  plan.device = device;
  plan.data = data;
  measure(sized, mesh, plan);
  const DeviceCapacity capacity = device.capacity();
  plan.device_bytes = capacity.free_bytes;
  if (device.is_gpu()) plan.driver_bytes = capacity.total_bytes - capacity.free_bytes;
  plan.flops_per_token = flops_per_token(deck, plan.parameters);
  plan.contents = full_rows(deck);
  count_tokens(plan);
  return plan;
}

Plan make_plan(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device,
               const data::SetSize& data) {
  Plan plan = plan_memory(deck, mesh, device, data);
  const std::string now = rate_key(plan, mesh.extents());
  if (const auto measured = stored_rate(deck.output.directory, now)) {
    plan.rate = {measured->tokens_per_second, fmt::format("measured by the run in {}, {}",
                                                          deck.output.directory, measured->date)};
    plan.measured = true;
  } else {
    estimate(plan, mesh.extents());
  }
  return plan;
}

void set_data(Plan& plan, const comm::Extents& extents, const data::SetSize& size,
              const RowContents& contents) {
  if (plan.deck.campaign.epochs > 0 && size.known())
    plan.deck = detail::with_steps(plan.deck, size);
  plan.data = size;
  plan.contents = contents;
  count_tokens(plan);
  if (!plan.measured) estimate(plan, extents);
}

}  // namespace tern::plan
