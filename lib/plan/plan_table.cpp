// The plan as a table and as a summary.
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "plan/course.hpp"
#include "plan/detail/rows.hpp"
#include "plan/plan.hpp"
#include "plan/sizes.hpp"
#include "plan/step_contents.hpp"
#include "plan/training_rate.hpp"
#include "words/numbers.hpp"

namespace tern::plan {
namespace {

using detail::mean_text, detail::remark, detail::row;

/// 472.7 K, 124.44 M, 13.11 B.
std::string many(double count) {
  if (count < 1e6) return fmt::format("{:.1f} K", count / 1e3);
  return count < 1e9 ? fmt::format("{:.2f} M", count / 1e6) : fmt::format("{:.2f} B", count / 1e9);
}

/// Where neither a table of devices nor a run gives a rate.
constexpr const char* no_estimate =
    "no estimate for this device; once steps run, the log shows the time left (try --quick 20)";

std::string many(std::size_t count) { return many(static_cast<double>(count)); }

int writers(const deck::Deck& deck, const comm::Extents& extents) {
  return deck::shard_of(deck.parallel) == deck::Shard::none ? extents.replica() : extents.ranks();
}

std::string memory_rows(const Plan& plan) {
  std::string text;
  for (const auto& [term, bytes] : plan.memory)
    text += row(term == Term::parameters ? "parameter memory" : term_name(term), size_text(bytes));
  if (plan.exchange_bytes > 0) text += row("NCCL, about", size_text(plan.exchange_bytes));
  text += row("memory per rank", size_text(plan.bytes()));
  if (plan.largest_bytes != plan.bytes())
    text += row("largest rank", size_text(plan.largest_bytes));
  return text + row("free on device", size_text(plan.device_bytes)) +
         row("checkpoint", size_text(plan.checkpoint_bytes));
}

/// Steps within max_hours.
std::string limit(const Course& c, const Plan& plan) {
  if (!c.cut) return {};
  return remark(fmt::format("max_hours = {} ends it at step {} of {}; all would take {}",
                            plan.deck.campaign.max_hours, c.steps, plan.steps, duration(c.all)));
}

std::string batch_rows(const Plan& plan, const comm::Extents& extents) {
  const workload::Layout& layout = plan.layout;
  const bool counts_samples = deck::counts_samples(plan.deck.batch);
  std::string text = row("batch", fmt::format("{} = {} x {} x {}", layout.global, layout.per_rank,
                                              extents.data, layout.accumulation));
  text += remark(fmt::format("{} per step = per rank x {}ranks x accumulation",
                             counts_samples ? "places for rows" : "sequences",
                             extents.replica() > 1 ? "data " : ""));
  if (!deck::trains(plan.deck)) return text;
  if (layout.steps.growth > 0)
    text +=
        row("grows", fmt::format("from {} in {} steps", layout.steps.start, layout.steps.growth));
  if (const auto samples = samples_per_step(plan))
    text += row("samples per step", mean_text(*samples));
  if (counts_samples)
    text += row("rows per step",
                plan.data.known() ? mean_text(layout.steps.mean()) : "unknown: no data yet");
  return text;
}

/// Steps and tokens; of a run that ends by wall time, those that fit.
std::string length_rows(const Plan& plan, const comm::Extents& extents) {
  const deck::Deck& deck = plan.deck;
  const auto each = steps_per_epoch(plan);
  const std::string epochs = each ? row("steps per epoch", mean_text(*each)) : "";
  if (!deck::timed(deck.campaign)) {
    if (plan.steps == 0) return row("steps", "unknown: no data yet");
    return epochs + row("steps", grouped(plan.steps)) +
           row("tokens", many(static_cast<double>(plan.tokens)));
  }
  if (!plan.rate) return epochs + row("steps", "unknown") + remark(no_estimate);
  const std::int64_t steps = course(plan, plan.rate->first, writers(deck, extents)).steps;
  const double tokens =
      plan.layout.steps.rows_in(static_cast<std::uint64_t>(steps)) * plan.contents.tokens();
  return epochs + row("steps", "about " + grouped(steps)) +
         remark(fmt::format("in max_hours = {}, which ends the run", deck.campaign.max_hours)) +
         row("tokens", many(tokens));
}

/// What may end the run before the time of the plan.
std::string shorter(const Course& c, const deck::Deck& deck) {
  std::string text;
  if (c.earliest > 0)
    text += remark(fmt::format("patience = {} may end it from step {} on, after {}",
                               deck.evaluation.patience, c.earliest, duration(c.earliest_seconds)));
  if (deck.evaluation.target_loss > 0)
    text += remark(
        fmt::format("target_loss = {} ends it when it is reached", deck.evaluation.target_loss));
  return text;
}

std::string time_rows(const Plan& plan, const comm::Extents& extents) {
  const deck::Deck& deck = plan.deck;
  if (!plan.rate) return row("time", "unknown") + remark(no_estimate);
  std::string text =
      row("rate", rounded(plan.rate->first) + " tokens/s") + remark(plan.rate->second);
  if (plan.steps == 0 && !deck::timed(deck.campaign))
    return text + row("time", "unknown: no data yet");
  const Course c = course(plan, plan.rate->first, writers(deck, extents));
  const std::string most = may_be_shorter(deck, c) ? "at most " : "";
  text += row("training", duration(c.training)) + row("evaluations", duration(c.evaluations)) +
          row("checkpoints", duration(c.checkpoints)) + row("time", most + duration(c.seconds())) +
          shorter(c, deck) + limit(c, plan);
  if (deck.cost.dollars_per_gpu_hour > 0)
    text += row("cost", fmt::format("{}${:.2f}", most, c.dollars(deck, extents.ranks())));
  return text;
}

}  // namespace

std::string table(const Plan& plan, const comm::Extents& extents) {
  const deck::Deck& deck = plan.deck;
  const int ranks = extents.ranks();
  std::string text =
      fmt::format("plan of '{}' on {}\n", deck.campaign.name, counted(ranks, "rank"));
  if (extents.replica() > 1)
    text +=
        row("mesh", fmt::format("{} x {} x {}", extents.data, extents.tensor, extents.pipeline)) +
        remark("data x tensor x pipeline");
  text += detail::node_rows(plan.device.placed(), extents, plan.device.nodes().gigabits > 0);
  text += row("parameter count", many(plan.parameters));
  if (plan.active_parameters < plan.parameters)
    text += row("active per token", many(plan.active_parameters));
  text += batch_rows(plan, extents) + memory_rows(plan);
  if (!deck::trains(deck)) return text;
  text += length_rows(plan, extents);
  text += row("FLOP per token", fmt::format("{:.3g}", plan.flops_per_token));
  return text + time_rows(plan, extents);
}

std::string summary(const Plan& plan, const comm::Extents& extents) {
  const workload::Layout& layout = plan.layout;
  std::string text = fmt::format(
      "plan of '{}': {} parameters, {} per rank of {} free, {} = {} x {} x {} {} per step",
      plan.deck.campaign.name, many(plan.parameters), size_text(plan.bytes()),
      size_text(plan.device_bytes), layout.global, layout.per_rank, extents.data,
      layout.accumulation, deck::counts_samples(plan.deck.batch) ? "places for rows" : "sequences");
  if (plan.rate)
    text += fmt::format("\n  about {} tokens/s ({})", rounded(plan.rate->first), plan.rate->second);
  return text + "\n";
}

}  // namespace tern::plan
