#include "workload/workload.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "generate/texts.hpp"
#include "model/declare.hpp"
#include "objective/kind.hpp"
#include "objective/refinement.hpp"
#include "workload/division.hpp"

namespace tern::workload {

namespace {

/// Sequences per micro-batch and rank. A preset's are divided if there are more ranks than its
/// batch has micro-batches.
std::size_t resolved_per_rank(const deck::Batch& batch, int ranks) {
  const std::int64_t given = batch.per_rank, share = batch.global / ranks;
  if (!deck::preset_of(batch) || batch.global % ranks != 0) return static_cast<std::size_t>(given);
  std::int64_t most = std::min(given, share);
  while (share % most != 0) --most;
  return static_cast<std::size_t>(most);
}

}  // namespace

std::size_t Layout::micro_batches(std::int64_t step) const {
  const std::size_t together = global / accumulation;
  return (steps.of(static_cast<std::uint64_t>(step)) + together - 1) / together;
}

double Layout::filled_micro_batches(std::int64_t step) const {
  const std::size_t rows = steps.of(static_cast<std::uint64_t>(step));
  return static_cast<double>((rows + per_rank - 1) / per_rank);
}

double Layout::filled() const {
  const double together = static_cast<double>(global / accumulation), mean = steps.mean();
  const double least = std::floor(mean);
  const auto places = [&](double rows) { return std::ceil(rows / together) * together; };
  return mean / (places(least) + (mean - least) * (places(least + 1) - places(least)));
}

data::StepRows step_rows(const deck::Deck& deck, const data::SetSize& size) {
  const auto count = static_cast<std::uint64_t>(deck.batch.global);
  if (!deck::counts_samples(deck.batch) || !size.known()) return {count};
  const data::StepRows steps{count, size.rows, size.samples};
  if (steps.mean() < 1)
    user_error(
        "&batch global = {} samples: a row of the training data holds {:.1f} of them on average, "
        "and rows are never split; set global = {} or more, or &data packing = .false.",
        count, size.per_row(), (size.samples + size.rows - 1) / size.rows);
  return steps;
}

Layout make_layout(const deck::Deck& deck, int ranks, const data::SetSize& size) {
  if (deck::counts_samples(deck.batch)) {
    const data::StepRows rows = step_rows(deck, size);
    const auto per_rank = static_cast<std::size_t>(deck.batch.per_rank);
    const std::size_t together = per_rank * static_cast<std::size_t>(ranks);
    const std::size_t accumulation = (rows.most() + together - 1) / together;
    return {per_rank, accumulation * together, accumulation, objective::row_positions(deck), rows};
  }
  const auto steps = static_cast<std::size_t>(deck.batch.accumulation);
  const std::size_t per_rank = resolved_per_rank(deck.batch, ranks);
  const std::size_t together = per_rank * static_cast<std::size_t>(ranks);
  const std::size_t global = deck.batch.global > 0 ? static_cast<std::size_t>(deck.batch.global)
                                                   : together * std::max<std::size_t>(1, steps);
  if (global % together != 0 || global == 0) {
    const std::size_t lower = global / together * together;
    user_error(
        "&batch global = {} is not a multiple of per_rank x ranks = {} x {} = {}; set global = "
        "{}{}, or change per_rank or the number of ranks",
        global, per_rank, ranks, together, lower > 0 ? fmt::format("{} or ", lower) : "",
        lower + together);
  }
  if (steps > 0 && steps * together != global) {
    const std::size_t wanted = global / (per_rank * steps);
    user_error(
        "&batch global = {} is not per_rank x ranks x accumulation = {} x {} x {} = {}; set "
        "accumulation = {} (or 0: it follows), or change global, per_rank or the number of ranks{}",
        global, per_rank, ranks, steps, steps * together, global / together,
        wanted * per_rank * steps == global
            ? fmt::format(" (it is a batch for {} ranks; --dry-run --ranks {} plans for them)",
                          wanted, wanted)
            : std::string());
  }
  data::StepRows rows{global};
  rows.start = static_cast<std::uint64_t>(deck.batch.global_start);
  rows.growth = static_cast<std::uint64_t>(deck.batch.growth_steps);
  if (rows.growth > 0 && (rows.start % together != 0 || global % rows.start != 0))
    user_error(
        "&batch global_start = {} is not a multiple of per_rank x ranks = {} x {} = {} that "
        "divides global = {}; change it, per_rank or the number of ranks",
        rows.start, per_rank, ranks, together, global);
  return {per_rank, global, global / together, objective::row_positions(deck), rows};
}

std::unique_ptr<comm::Mesh> make_mesh(const deck::Deck& deck) {
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const deck::Parallel& p = deck.parallel;
  check_division(deck.model, p.tensor, p.pipeline);
  auto world = comm::world();
  const comm::Extents extents =
      comm::extents_for(world->size(), number(p.data), number(p.tensor), number(p.pipeline));
  const std::size_t kv_replicas =
      model::kv_replicas(deck.model, static_cast<std::size_t>(p.tensor));
  return std::make_unique<comm::Mesh>(std::move(world), extents, static_cast<int>(kv_replicas));
}

std::unique_ptr<comm::Mesh> planning_mesh(const deck::Deck& deck, int ranks) {
  const deck::Parallel& p = deck.parallel;
  if (ranks > 0) {
    const auto number = [](std::int64_t value) { return static_cast<int>(value); };
    check_division(deck.model, p.tensor, p.pipeline);
    return comm::Mesh::for_planning(
        comm::extents_for(ranks, number(p.data), number(p.tensor), number(p.pipeline)));
  }
  if (std::max<std::int64_t>(p.data, 1) * p.tensor * p.pipeline == 1) return make_mesh(deck);
  check_division(deck.model, p.tensor, p.pipeline);
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  return comm::Mesh::for_planning(
      {std::max(number(p.data), 1), number(p.tensor), number(p.pipeline)});
}

std::vector<generate::LevelRule> level_rules(const deck::Deck& deck) {
  const deck::Objective& o = deck.objective;
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::size_t context = size(deck.model.context), block = size(o.block_length);
  if (deck::hierarchical(o))
    return {{size(deck.data.plan_tokens), size(o.plan_block), 1, 1},
            {size(deck.data.execution_tokens), size(o.execution_block), 2, 1}};
  // A flat sample is plan and execution or, with the question, three segments; a text ends at its
  // second end token, since it may begin with one.
  if (deck::conditioned(deck)) return {{context - size(deck.data.question_tokens), block, -1, 2}};
  return {{context, block, -1, deck::holds_samples(deck.data) ? std::size_t{3} : 2}};
}

bool weights_later(const deck::Deck& deck) {
  return deck.parallel.pipeline > 1 && deck.parallel.tensor == 1 &&
         !deck::recomputes(deck.precision) &&
         deck::compute_of(deck.precision) != deck::Compute::fp8 && deck.model.experts == 0;
}

ops::Products products_of(const deck::Deck& deck) {
  const bool fastest = deck::trains(deck) && deck::times_products(deck.precision);
  return fastest ? ops::Products::fastest : ops::Products::first;
}

namespace {

model::Purpose purpose_of(const deck::Deck& deck) {
  return deck::trains(deck) ? model::Purpose::training : model::Purpose::inference;
}

bool samples_blocks(const deck::Deck& deck) {
  if (!deck::kind_of(deck).diffuses) return false;
  if (deck::task_of(deck) == deck::Task::generate) return true;
  if (!deck::holds_samples(deck.data)) return false;
  return deck::task_of(deck) == deck::Task::evaluate || deck.evaluation.problems > 0;
}

/// Pipeline stages do not know each other's experts.
bool balanced(const deck::Deck& deck) {
  return deck::trains(deck) && deck.model.experts > 0 && deck.parallel.pipeline == 1;
}

std::size_t scored_rows(const deck::Deck& deck, const Layout& layout) {
  return layout.per_rank * objective::scored_positions(deck);
}

model::TransformerOptions transformer_options(const deck::Deck& deck, const Layout& layout,
                                              const model::ModelShard& share, bool fp8_available) {
  model::TransformerOptions options{layout.per_rank, layout.tokens};
  options.training = deck::trains(deck);
  options.recompute = deck::recomputes(deck.precision);
  options.positions = static_cast<std::size_t>(deck.model.context);
  if (options.training) {
    // Each stage but the first has one before it that waits for its gradients.
    options.weights_later = !share.first() && weights_later(deck);
    // A micro-batch's way to the last stage and back, and one whose weights' gradients wait.
    const std::size_t stages = share.stages - share.stage + (options.weights_later ? 1 : 0);
    options.in_flight = std::min(layout.accumulation, stages);
  }
  if (options.training) options.connected = static_cast<std::size_t>(deck::connected_steps(deck));
  // Generation, with few rows, stays in bf16.
  options.fp8 = deck::compute_of(deck.precision) == deck::Compute::fp8 && fp8_available;
  const std::size_t scored = scored_rows(deck, layout);
  if (scored < layout.per_rank * layout.tokens) options.scored = scored;
  return options;
}

std::string fp8_exceptions_of(const deck::Deck& deck, const Layout& layout,
                              const std::vector<linear::MapShape>& maps, bool available) {
  if (deck::compute_of(deck.precision) != deck::Compute::fp8) return {};
  if (!available)
    return fmt::format(
        "all linear layers, since '{}' has no fp8 GEMMs (compute capability 8.9 or higher has, "
        "such as H100 and L40)",
        Device::name());
  std::vector<std::string> all;
  const std::size_t rows = layout.per_rank * layout.tokens;
  if (!ops::fp8_takes(rows, 16, 16))
    all.push_back(fmt::format(
        "all linear layers, since the {} tokens of a micro-batch are not a multiple of 16", rows));
  else
    for (const auto& [inputs, outputs] : maps)
      if (!ops::fp8_takes(rows, inputs, outputs))
        all.push_back(
            fmt::format("linear layers of {} x {}, not multiples of 16", inputs, outputs));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const auto D = static_cast<std::size_t>(deck.model.hidden),
             V = static_cast<std::size_t>(deck.model.vocabulary);
  if (deck.parallel.tensor > 1)
    all.push_back("the head's gradients, since tensor ranks divide the vocabulary");
  else if (!ops::fp8_takes(16, D, V))
    all.push_back(fmt::format("the head's gradients, {} x {}, not multiples of 16", D, V));
  if (deck.model.experts > 0) all.push_back("experts and their router");
  return fmt::format("{}", fmt::join(all, "; "));
}

template <class T>
model::Parameters<T> make_parameters(const deck::Deck& deck, const model::ParameterTree& tree,
                                     comm::Group& group, Arena& arena) {
  if (optimizer::fully_sharded(deck, group.size())) return {tree, purpose_of(deck), group, arena};
  return {tree, purpose_of(deck), arena};
}

}  // namespace

template <class T>
Workload<T>::Workload(const deck::Deck& deck, const Layout& layout, const comm::Mesh& mesh,
                      Arena& arena)
    : tree(model::declare(deck.model), static_cast<std::size_t>(mesh.data().size()),
           optimizer::division(deck), model::share_of(mesh)),
      context(ops::make_context(arena, true, deck.model.attention.c_str(), products_of(deck))),
      parameters(make_parameters<T>(deck, tree, mesh.data(), arena)),
      model(deck.model, tree, parameters,
            transformer_options(deck, layout, tree.share(), ops::fp8_available(context)), arena),
      objective(objective::make_objective<T>(
          deck, {layout.per_rank, layout.tokens, layout.accumulation, model.in_flight()}, arena)),
      losses(arena.vector<A>("losses", Term::workspace, scored_rows(deck, layout))),
      best(arena.vector<std::int32_t>("argmax tokens", Term::workspace,
                                      objective->wants_best() ? scored_rows(deck, layout) : 0)),
      loss_sums(arena.matrix<A>("loss sums", Term::workspace, 1 + objective->parts().size(),
                                layout.accumulation * objective->steps())),
      balances(arena.vector<A>("balances of experts", Term::workspace,
                               balanced(deck) ? layout.accumulation : 0)),
      fp8_exceptions(fp8_exceptions_of(deck, layout, model.maps(), ops::fp8_available(context))) {
  context.tf32 = deck::compute_of(deck.precision) == deck::Compute::tf32;
  if (deck::trains(deck)) optimizer.emplace(deck, tree, parameters, mesh.data(), arena);
  if (samples_blocks(deck)) {
    const auto levels = level_rules(deck);
    std::size_t largest = 0;
    for (const generate::LevelRule& level : levels)
      largest = std::max(largest, level.block_tokens());
    sampler.emplace(deck.model, tree, parameters, static_cast<std::size_t>(deck.generation.batch),
                    static_cast<std::size_t>(deck.model.context), largest, arena);
  }
  if (!deck::kind_of(deck).diffuses && deck.generation.samples > 0)
    writer.emplace(deck.model, tree, parameters,
                   generate::text_options(static_cast<std::size_t>(deck.generation.samples),
                                          layout.tokens, objective::refinements(deck) + 1),
                   arena);
}

template <class T>
void Workload<T>::prepare(Log& log) {
  model.prepare(context);
  if (writer) writer->prepare(context);
  if (sampler) sampler->prepare(context);
  if (!fp8_exceptions.empty()) log.line("computed in bf16 instead of fp8: {}", fp8_exceptions);
}

template struct Workload<float>;
template struct Workload<bf16>;
template struct Workload<fp16>;

}  // namespace tern::workload
