#include <fmt/format.h>

#include "deck/detail/assign.hpp"
#include "deck/detail/contradictions.hpp"
#include "deck/objective_kind.hpp"
#include "deck/optimizer_kind.hpp"
#include "deck/rules.hpp"

namespace tern::deck::detail {

void check_schedule(const Deck& d, Contradictions& c) {
  const Optimizer& o = d.optimizer;
  // With epochs the number of steps depends on the data: plan/detail/epochs.cpp checks again.
  const bool known = d.campaign.epochs == 0 && !timed(d.campaign);
  c.check(timed(d.campaign) && d.campaign.max_hours == 0 && d.campaign.task == "train",
          {"campaign.max_steps", "campaign.max_hours"},
          "max_steps and max_hours are both 0, so the run would not end; set one of them");
  const std::int64_t steps = d.campaign.max_steps;
  c.check(o.betas.size() != 2, {"optimizer.betas"},
          fmt::format("{} values instead of two; set e.g. betas = 0.9, 0.95", o.betas.size()));
  c.check(known && o.warmup_steps > steps, {"optimizer.warmup_steps", "campaign.max_steps"},
          fmt::format("{} is more than campaign.max_steps = {}; shorten the warmup", o.warmup_steps,
                      steps));
  const double lr = lr_of(d);
  c.check(lr > 0 && o.min_lr > lr, {"optimizer.min_lr", "optimizer.lr", "optimizer.lr_rule"},
          fmt::format("{} is above lr = {}; lower it", text_of(o.min_lr), text_of(lr)));
  const double decay = o.decay_fraction * static_cast<double>(steps);
  c.check(
      known && o.schedule == "wsd" && o.warmup_steps <= steps &&
          static_cast<double>(o.warmup_steps) + decay > static_cast<double>(steps),
      {"optimizer.decay_fraction", "optimizer.warmup_steps", "campaign.max_steps",
       "optimizer.schedule"},
      fmt::format("warmup_steps = {} and a decay over {} of {} steps overlap; shorten one of them",
                  o.warmup_steps, text_of(o.decay_fraction), steps));
}

/// Refuses values that only other kinds read; compares with defaults, since a printed deck gives
/// all.
void check_optimizer(const Deck& d, Contradictions& c) {
  Deck copy = d, plain;
  Table ours = describe(copy), defaults = describe(plain);
  for (const OptimizerKind& kind : optimizer_kinds)
    for (const char* setting : kind.settings)
      c.check(
          !kind_of(d.optimizer).reads(setting) &&
              text_of(ours.at("optimizer", setting)) != text_of(defaults.at("optimizer", setting)),
          {fmt::format("optimizer.{}", setting).c_str(), "optimizer.kind"},
          fmt::format("only kind = '{0}' uses it, not '{1}'; set kind = '{0}', or remove it",
                      kind.name, d.optimizer.kind));
}

/// Settings that cannot be divided over ranks, whatever the model's sizes.
void check_parallel(const Deck& d, Contradictions& c) {
  const Parallel& p = d.parallel;
  const OptimizerKind& optimizer = kind_of(d.optimizer);
  c.check(p.tensor > 1 && optimizer.whole_matrices && d.campaign.task == "train",
          {"parallel.tensor", "optimizer.kind", "campaign.task"},
          fmt::format("{} tensor ranks split each matrix, and {} needs whole ones; set tensor = "
                      "1 or optimizer.kind = 'adamw'",
                      p.tensor, optimizer.title));
  c.check(p.pipeline > 1 && d.model.router_loss > 0 && d.campaign.task == "train",
          {"model.router_loss", "parallel.pipeline", "campaign.task"},
          "the load-balancing loss covers all layers, and a pipeline stage has only some; set "
          "router_loss = 0 or parallel.pipeline = 1");
  c.check(p.pipeline > 1 && d.model.inner_steps > 0, {"parallel.pipeline", "model.inner_steps"},
          "a recursive model passes over all layers several times, which pipeline stages do not "
          "support; set pipeline = 1, or use parallel.tensor");
  if (p.shard != "full") return;
  for (const Conflict& conflict : conflicts_with_full(d)) {
    std::vector<const char*> names{"parallel.shard"};
    names.insert(names.end(), conflict.names.begin(), conflict.names.end());
    c.check(true, names, conflict.text);
  }
}

/// Requests read from a file, and their format.
void check_requests(const Deck& d, Contradictions& c) {
  const Generation& g = d.generation;
  c.check(d.data.thinking && d.data.chat_template != "qwen3",
          {"data.thinking", "data.chat_template"},
          fmt::format("chat_template = '{}' has no format for thinking; set chat_template = "
                      "'qwen3' or thinking = .false.",
                      d.data.chat_template));
  const ObjectiveKind& kind = kind_of(d);
  if (d.campaign.task == "train") return;
  c.check(!g.input.empty() && (kind.diffuses || kind.refines),
          {"generation.input", "objective.kind"},
          fmt::format(
              "kind = '{}' cannot answer a file of requests; set kind = 'supervised' or 'causal'",
              d.objective.kind));
  c.check(!g.input.empty() && g.max_tokens >= g.max_model_len,
          {"generation.max_tokens", "generation.max_model_len"},
          fmt::format("{} leaves no room for a prompt in max_model_len = {}; lower it",
                      g.max_tokens, g.max_model_len));
  const auto unread = [&](const char* name, bool given) {
    c.check(g.input.empty() && given, {name, "generation.input"},
            "only used with a file of requests; set generation.input, or remove it");
  };
  unread("generation.prompt_template", !g.prompt_template.empty());
  unread("generation.output", !g.output.empty());
  unread("generation.pattern", !g.pattern.empty());
  unread("generation.stop", !g.stop.empty());
  unread("generation.quantization", g.quantization != "none");
  unread("generation.cache_quantization", g.cache_quantization != "none");
  c.check(!g.input.empty() && g.quantization != "none" && stores_fp32(d.precision),
          {"generation.quantization", "precision.compute"},
          fmt::format("'{}' needs weights stored in 16 bits, and compute = '{}' stores 32; set "
                      "compute = 'bf16' or quantization = 'none'",
                      g.quantization, d.precision.compute));
}

void check_run(const Deck& d, Contradictions& c) {
  const Evaluation& e = d.evaluation;
  c.check(
      e.every == 0 && e.patience > 0, {"evaluation.patience", "evaluation.every"},
      "early stopping needs evaluations, but every = 0; set every > 0 (e.g. 500) or patience = 0");
  c.check(e.every == 0 && e.target_loss > 0, {"evaluation.target_loss", "evaluation.every"},
          "a target needs evaluations, but every = 0; set every > 0 (e.g. 500) or target_loss = 0");
  c.check(d.campaign.task == "generate" && d.generation.input.empty() &&
              d.generation.prompt.empty() && d.generation.samples == 0,
          {"generation.samples", "campaign.task"},
          "task = 'generate' with samples = 0 does nothing; set samples = 1 or more");
  c.check(d.campaign.name.empty() && d.output.directory.empty(),
          {"campaign.name", "output.directory"},
          "empty, and so is output.directory; set one of them");
  c.check(
      d.model.context == 1 && d.generation.samples > 0 && d.generation.input.empty() &&
          d.campaign.task != "evaluate" && !kind_of(d).diffuses,
      {"model.context", "generation.samples"},
      "1 leaves no room to continue a prompt; set context = 2 or more, or generation.samples = 0");
  c.check((d.campaign.name == "." || d.campaign.name == "..") && d.output.directory.empty(),
          {"campaign.name", "output.directory"},
          fmt::format("'{}' is not a directory of its own under runs/; set another name",
                      d.campaign.name));
  c.check(d.campaign.name.find('/') != std::string::npos && d.output.directory.empty(),
          {"campaign.name", "output.directory"},
          "contains a '/', but names a directory under runs/; remove it, or set output.directory");
}

}  // namespace tern::deck::detail
