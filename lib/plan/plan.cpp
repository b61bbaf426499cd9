#include "plan/plan.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.hpp"
#include "plan/detail/devices.hpp"
#include "plan/detail/ranks.hpp"
#include "plan/detail/rows.hpp"
#include "plan/devices.hpp"
#include "plan/workload.hpp"

namespace tern::plan {

using detail::remark, detail::row;

namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr std::array terms{Term::parameters, Term::gradients, Term::optimizer, Term::activations,
                           Term::workspace,  Term::data,      Term::cache};

template <class T>
void measure(const deck::Deck& deck, const comm::Mesh& mesh, Plan& plan) {
  const Layout layout = make_layout(deck, mesh.data().size());
  Arena arena;
  const Workload<T> workload(deck, layout, mesh, arena);
  plan.per_rank = static_cast<std::int64_t>(layout.per_rank);
  plan.global = static_cast<std::int64_t>(layout.global);
  plan.accumulation = static_cast<std::int64_t>(layout.accumulation);
  plan.total_bytes = arena.bytes();
  plan.largest_bytes = detail::largest(plan.total_bytes, mesh.world());
  plan.memory.clear();
  for (const Term term : terms)
    if (const std::size_t bytes = arena.bytes(term); bytes > 0)
      plan.memory.emplace_back(term, bytes);
  std::int64_t counts[2] = {0, 0};  // of this rank's share: parameters, and with their states
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
  plan.parameters = static_cast<std::size_t>(counts[0]);
  plan.active_parameters = active_parameters(deck.model, plan.parameters);
  plan.checkpoint_bytes = static_cast<std::size_t>(counts[1]) * sizeof(float);
}

void measure(const deck::Deck& deck, const comm::Mesh& mesh, Plan& plan) {
  const std::string& compute = deck.precision.compute;
  if (compute == "bf16" || compute == "fp8") return measure<bf16>(deck, mesh, plan);
  TERN_REQUIRE(compute == "fp32", "precision '{}'", compute);
  measure<float>(deck, mesh, plan);
}

/// The largest per_rank that fits the least free device of all ranks. With &batch global given it
/// must divide global / data ranks; else powers of two are tried.
std::int64_t largest_batch(deck::Deck deck, const comm::Mesh& mesh) {
  const std::size_t free = detail::least(planned_capacity().free_bytes, mesh.world());
  const auto room = static_cast<std::size_t>(0.94 * static_cast<double>(free));
  const std::int64_t share = deck.batch.global > 0 ? deck.batch.global / mesh.data().size() : 0;
  std::int64_t best = 0;
  for (std::int64_t candidate = 1; candidate <= (share > 0 ? share : 4096); ++candidate) {
    if (share > 0 ? share % candidate != 0 : (candidate & (candidate - 1)) != 0) continue;
    deck.batch.per_rank = candidate;
    Plan plan;
    measure(deck, mesh, plan);
    if (plan.largest_bytes > room) break;  // ranks may hold other states
    best = candidate;
  }
  if (best == 0)
    user_error(
        "not even one sequence of {} tokens a rank fits the {:.1f} GiB free on the device: set "
        "&precision recompute = 'block', or make the model or its context smaller",
        deck.model.context, static_cast<double>(room) / gib);
  return best;
}

/// Rate measured by the last run in the deck's directory, if there was one.
std::optional<double> measured_rate(const std::string& directory) {
  std::ifstream file(directory + "/metrics.jsonl");
  std::vector<double> rates;
  const std::string key = "\"train/throughput\":";
  for (std::string line; std::getline(file, line);)
    if (const auto at = line.find(key); at != std::string::npos)
      rates.push_back(std::strtod(line.c_str() + at + key.size(), nullptr));
  if (rates.empty()) return std::nullopt;
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2),
                   rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

std::size_t active_parameters(const deck::Model& m, std::size_t parameters) {
  if (m.experts == 0) return parameters;
  const std::int64_t idle = m.experts - m.experts_per_token;
  return parameters - static_cast<std::size_t>(m.layers * idle * 3 * m.hidden * m.expert_hidden);
}

double flops_per_token(const deck::Deck& deck, std::size_t parameters) {
  const deck::Model& model = deck.model;
  const bool refinement = deck.objective.kind == "refinement";
  const double steps = refinement ? static_cast<double>(deck.objective.supervision_steps) : 1;
  const double passes = steps * static_cast<double>(model.inner_steps + 1);
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const double blocks = static_cast<double>(active_parameters(model, parameters)) -
                        (model.tie_embeddings ? 1 : 2) * head;
  const double attention = 12.0 * static_cast<double>(model.layers) *
                           static_cast<double>(model.heads * model.head_dim) *
                           static_cast<double>(model.context);
  return 6 * (passes * blocks + steps * head) + passes * attention;
}

std::optional<double> peak_tflops(const deck::Deck& deck) {
  if (deck.cost.peak_tflops > 0) return deck.cost.peak_tflops;
  if (const detail::KnownDevice* device = detail::planned_device())
    return device->tflops(deck.precision.compute);
  return std::nullopt;
}

Plan plan_memory(const deck::Deck& deck, const comm::Mesh& mesh) {
  deck::Deck resolved = deck;
  if (deck.batch.per_rank == 0) resolved.batch.per_rank = largest_batch(deck, mesh);
  Plan plan;
  measure(resolved, mesh, plan);
  plan.device_bytes = planned_capacity().free_bytes;
  if (deck.campaign.epochs == 0) set_steps(plan, deck, deck.campaign.max_steps, 1);
  plan.flops_per_token = flops_per_token(deck, plan.parameters);
  return plan;
}

Plan make_plan(const deck::Deck& deck, const comm::Mesh& mesh) {
  Plan plan = plan_memory(deck, mesh);
  if (const auto rate = measured_rate(deck.output.directory))
    plan.rate = {*rate, fmt::format("median of the last run in {}", deck.output.directory)};
  else if (const auto peak = peak_tflops(deck))
    plan.rate = {0.4 * *peak * 1e12 * mesh.world().size() / plan.flops_per_token,
                 fmt::format("if 40% of {:.0f} TFLOP/s a device is reached", *peak)};
  return plan;
}

void set_steps(Plan& plan, const deck::Deck& deck, std::int64_t steps, double fill) {
  plan.steps = steps;
  plan.tokens = static_cast<double>(steps) * static_cast<double>(plan.global) * fill *
                static_cast<double>(deck.model.context);
}

std::string table(const Plan& plan, const deck::Deck& deck, const comm::Extents& extents) {
  const int ranks = extents.ranks();
  std::string text =
      fmt::format("plan of '{}' on {} rank{}\n", deck.campaign.name, ranks, ranks > 1 ? "s" : "");
  if (extents.replica() > 1)
    text +=
        row("mesh", fmt::format("{} x {} x {}", extents.data, extents.tensor, extents.pipeline)) +
        remark("data x tensor x pipeline");
  text += row("parameters", fmt::format("{:.2f} M", static_cast<double>(plan.parameters) / 1e6));
  if (plan.active_parameters < plan.parameters)
    text += row("active a token",
                fmt::format("{:.2f} M", static_cast<double>(plan.active_parameters) / 1e6));
  text += row("batch", fmt::format("{} = {} x {} x {}", plan.global, plan.per_rank, extents.data,
                                   plan.accumulation));
  text += remark(fmt::format("sequences a step = per rank x {}ranks x accumulation",
                             extents.replica() > 1 ? "data " : ""));
  for (const auto& [term, bytes] : plan.memory)
    text += row(term_name(term), fmt::format("{:.3f} GiB", static_cast<double>(bytes) / gib));
  text +=
      row("memory a rank", fmt::format("{:.3f} GiB", static_cast<double>(plan.total_bytes) / gib));
  if (plan.largest_bytes != plan.total_bytes)
    text += row("largest rank",
                fmt::format("{:.3f} GiB", static_cast<double>(plan.largest_bytes) / gib));
  text += row("free on device",
              fmt::format("{:.3f} GiB", static_cast<double>(plan.device_bytes) / gib));
  text += row("checkpoint",
              fmt::format("{:.3f} GiB", static_cast<double>(plan.checkpoint_bytes) / gib));
  const bool known = plan.steps > 0;
  text += row("steps", known ? fmt::format("{}", plan.steps) : "unknown: no data yet");
  if (known) text += row("tokens", fmt::format("{:.1f} M", plan.tokens / 1e6));
  text += row("FLOP a token", fmt::format("{:.3g}", plan.flops_per_token));
  if (!plan.rate) return text + row("time", "unknown: no rate yet");
  text += row("rate", fmt::format("{:.0f} tokens/s", plan.rate->first));
  text += remark(plan.rate->second);
  if (!known) return text + row("time", "unknown: no data yet");
  double seconds = plan.tokens / plan.rate->first;
  if (deck.campaign.max_hours > 0) seconds = std::min(seconds, deck.campaign.max_hours * 3600);
  text += row("time", detail::duration(seconds));
  if (deck.cost.dollars_per_gpu_hour > 0)
    text += row("cost",
                fmt::format("${:.2f}", seconds / 3600 * ranks * deck.cost.dollars_per_gpu_hour));
  return text;
}

}  // namespace tern::plan
