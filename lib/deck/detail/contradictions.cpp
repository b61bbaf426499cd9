#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "deck/detail/assign.hpp"
#include "deck/detail/contradictions.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"

namespace tern::deck::detail {
namespace {

/// Whether a is not a multiple of b; false for b = 0, which means a default.
bool uneven(std::int64_t a, std::int64_t b) { return b > 0 && a % b != 0; }

void check_model(const Model& m, Contradictions& c) {
  const std::int64_t size = head_size_of(m), heads = m.heads > 0 ? m.heads : m.hidden / size;
  c.check(m.heads == 0 && uneven(m.hidden, size), {"model.heads", "model.hidden", "model.head_dim"},
          fmt::format("0 gives heads of size {}, which does not divide hidden = {}; set heads, or "
                      "change hidden",
                      size, m.hidden));
  c.check(m.head_dim == 0 && uneven(m.hidden, m.heads),
          {"model.heads", "model.hidden", "model.head_dim"},
          fmt::format("{} heads do not divide hidden = {}; change one of them, or set head_dim",
                      m.heads, m.hidden));
  c.check(uneven(heads, m.kv_heads), {"model.kv_heads", "model.heads"},
          fmt::format("{} does not divide heads = {}; set kv_heads to a divisor of heads, or 0",
                      m.kv_heads, heads));
  const bool divides = heads > 0 && m.hidden % heads == 0;
  const std::int64_t head_dim = m.head_dim > 0 ? m.head_dim : divides ? m.hidden / heads : 0;
  c.check(m.position == "rope" && head_dim % 2 != 0,
          {m.head_dim > 0 ? "model.head_dim" : "model.heads", "model.hidden", "model.position"},
          fmt::format("position = 'rope' needs an even head size, not {}; set head_dim to an even "
                      "number (e.g. 64)",
                      head_dim));
}

void check_experts(const Deck& d, Contradictions& c) {
  const Model& m = d.model;
  if (m.experts == 0) {
    const auto unread = [&](const char* name, bool given) {
      c.check(given, {name, "model.experts"},
              "only MoE models use it; set experts (e.g. experts = 128), or remove it");
    };
    unread("model.experts_per_token", m.experts_per_token > 0);
    unread("model.expert_hidden", m.expert_hidden > 0);
    return unread("model.router_loss", m.router_loss > 0);
  }
  c.check(m.experts_per_token == 0 || m.experts_per_token > m.experts,
          {"model.experts_per_token", "model.experts"},
          fmt::format("{} is not between 1 and experts = {}; set experts_per_token = 1 to {}",
                      m.experts_per_token, m.experts, m.experts));
  c.check(m.expert_hidden == 0, {"model.expert_hidden", "model.experts"},
          "experts need a width; set expert_hidden (e.g. expert_hidden = 768)");
  c.check(m.activation != "swiglu", {"model.activation", "model.experts"},
          fmt::format(
              "experts support only 'swiglu', not '{}'; set activation = 'swiglu' or experts = 0",
              m.activation));
  c.check(m.ffn_bias, {"model.ffn_bias", "model.experts"},
          "experts have no biases; set ffn_bias = .false. or experts = 0");
  c.check(m.inner_steps > 0, {"model.inner_steps", "model.experts"},
          "recursive MoE models are not supported; set inner_steps = 0 or experts = 0");
}

/// The multiples of `unit` next to `value`: "8 or 16".
std::string multiples_near(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return below > 0 ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", unit);
}

void check_global(const Batch& b, std::int64_t data, Contradictions& c) {
  if (b.preset != "none" || counts_samples(b) || b.global == 0) return;
  if (std::max({b.global, b.per_rank, data}) > largest_global) return;  // out of range: reported
  const std::int64_t unit = std::max<std::int64_t>(b.per_rank, 1) * data;
  const auto refuse = [&](const std::string& product, std::int64_t of,
                          const std::vector<const char*>& names) {
    c.check(true, names,
            fmt::format("{} is not a multiple of {}; set global = {}, or 0 (per_rank x ranks)",
                        b.global, product, multiples_near(b.global, of)));
  };
  if (uneven(b.global, b.per_rank))
    refuse(fmt::format("per_rank = {}", b.per_rank), b.per_rank,
           {"batch.global", "batch.per_rank"});
  else if (uneven(b.global, unit))
    refuse(b.per_rank > 0 ? fmt::format("per_rank x parallel.data = {} x {}", b.per_rank, data)
                          : fmt::format("parallel.data = {}", data),
           unit, {"batch.global", "parallel.data", "batch.per_rank"});
}

void check_sizes(const Deck& d, Contradictions& c) {
  struct Least {
    const char* tokenizer;
    std::int64_t tokens;
  };
  for (const Least& least : {Least{"gpt2", 50257}, Least{"bytes", 257}})
    c.check(d.data.tokenizer == least.tokenizer && d.model.vocabulary < least.tokens,
            {"model.vocabulary", "data.tokenizer"},
            fmt::format(
                "{0} is less than the {1} tokens of tokenizer '{2}'; set vocabulary = {1} or more",
                d.model.vocabulary, least.tokens, least.tokenizer));
  for (const Least& least : {Least{"gpt2", 50258}, Least{"bytes", 258}})
    c.check(kind_of(d).diffuses && d.data.tokenizer == least.tokenizer &&
                d.model.vocabulary < least.tokens,
            {"model.vocabulary", "objective.kind", "data.tokenizer"},
            fmt::format("{0} leaves no token for the mask, which is the last of the vocabulary; "
                        "set vocabulary = {1} or more",
                        d.model.vocabulary, least.tokens));
  c.check(stores_fp32(d.precision) && d.model.attention == "cudnn",
          {"model.attention", "precision.compute"},
          fmt::format(
              "cuDNN's attention does not support {}; set attention = 'auto' or compute = 'bf16'",
              d.precision.compute));
}

void check_precision(const Precision& p, Contradictions& c) {
  const bool power = std::exp2(std::round(std::log2(p.loss_scale))) == p.loss_scale;
  c.check(!power, {"precision.loss_scale"},
          fmt::format("{} is not a power of two and would round gradients; set loss_scale to a "
                      "power of two (e.g. 65536)",
                      text_of(p.loss_scale)));
  const Precision plain;
  for (const auto& [set, name] :
       {std::pair(p.loss_scale != plain.loss_scale, "precision.loss_scale"),
        {p.loss_scale_steps != plain.loss_scale_steps, "precision.loss_scale_steps"}})
    c.check(set && p.compute != "fp16", {name, "precision.compute"},
            fmt::format("only 'fp16' scales the loss, not '{}'; remove it, or set compute = 'fp16'",
                        p.compute));
}

/// Refuses a value that differs from that of its preset.
void against_preset(Contradictions& c, const char* name, const char* preset_name,
                    const std::string& preset, const std::string& value, const std::string& its) {
  c.check(
      c.given(name) && value != its, {name, preset_name},
      fmt::format("{}, but preset = '{}' sets {}; remove one of the two, or set preset = 'none'",
                  value, preset, its));
}

void check_samples_of_step(const Deck& d, Contradictions& c) {
  const Batch& b = d.batch;
  const bool files = !d.data.train.empty() || !d.data.valid.empty();
  c.check(files && !holds_samples(d.data), {"batch.unit", "data.train", "data.valid"},
          "'samples' counts problems or conversations (.json, .jsonl), which token shards do not "
          "have; set unit = 'rows'");
  c.check(b.preset != "none", {"batch.preset", "batch.unit"},
          fmt::format("'{}' counts rows; set preset = 'none' and give global, or set unit = 'rows'",
                      b.preset));
  c.check(b.preset == "none" && b.global == 0, {"batch.global", "batch.unit"},
          "unit = 'samples' needs the number of samples per step; set global (e.g. global = 32)");
  c.check(b.accumulation > 0, {"batch.accumulation", "batch.unit"},
          "with unit = 'samples' the accumulation follows from the data; set accumulation = 0 or "
          "unit = 'rows'");
}

void check_batch(const Deck& d, Contradictions& c) {
  const Batch& b = d.batch;
  if (counts_samples(b)) return check_samples_of_step(d, c);
  if (const BatchPreset* preset = preset_of(b)) {
    const auto against = [&](const char* name, std::int64_t value, std::int64_t its) {
      against_preset(c, name, "batch.preset", b.preset, fmt::format("{}", value),
                     fmt::format("{}", its));
    };
    against("batch.per_rank", b.per_rank, preset->per_rank);
    against("batch.global", b.global, preset->global);
  }
  const std::int64_t global = global_of(b), per_rank = per_rank_of(b);
  const double together = double(per_rank) * double(d.parallel.data),  // int64 might overflow
      product = together * double(b.accumulation);
  c.check(global > 0 && product > 0 && product != double(global),
          {"batch.accumulation", "batch.global", "batch.per_rank", "parallel.data", "batch.preset"},
          fmt::format("per_rank x parallel.data x accumulation = {} x {} x {} = {:.0f} is not "
                      "global = {}; change one of them, or set accumulation = 0",
                      per_rank, d.parallel.data, b.accumulation, product, global));
  c.check(b.accumulation > 0 && per_rank == 0, {"batch.accumulation", "batch.per_rank"},
          "per_rank = 0 asks for the largest micro-batch, from which the accumulation follows; set "
          "accumulation = 0, or give per_rank");
  const double resolved = std::max(together, product);
  c.check(global == 0 && resolved > double(largest_global),
          {"batch.per_rank", "parallel.data", "batch.accumulation", "batch.global"},
          fmt::format("per_rank x parallel.data x accumulation = {:.0f} is more than {} sequences; "
                      "lower one of them",
                      resolved, largest_global));
}

void check_lr_rule(const Deck& d, Contradictions& c) {
  const Optimizer& o = d.optimizer;
  if (o.lr_rule == "none") return;
  const std::int64_t global = global_of(d.batch);
  const double lr = lr_of(d);
  c.check(global == 0, {"optimizer.lr_rule", "batch.global", "batch.preset"},
          "the learning rate depends on batch.global, which is not set; set global (e.g. global = "
          "256) or a preset");
  c.check(global > 0 && lr == 0, {"optimizer.lr_rule", "batch.global", "batch.preset"},
          fmt::format("'table' covers global = 128, 256, 512, 768 and 1024, not {}; set one of "
                      "these, or lr_rule = 'sqrt'",
                      global));
  c.check(lr > 0 && c.given("optimizer.lr") && o.lr != lr, {"optimizer.lr", "optimizer.lr_rule"},
          fmt::format("{}, but lr_rule = '{}' gives {} at global = {}; remove one of the two",
                      text_of(o.lr), o.lr_rule, text_of(lr), global));
}

/// Data that the objective reads.
void check_data(const Deck& d, Contradictions& c) {
  const ObjectiveKind& kind = kind_of(d);
  const bool files = !d.data.train.empty() || !d.data.valid.empty();
  const bool samples = holds_samples(d.data), reads_samples = *kind.samples != 0;
  c.check(samples && !reads_samples, {"data.train", "data.valid", "objective.kind"},
          fmt::format("kind = '{}' reads token shards, not JSON; make shards with ./prepare text, "
                      "or set kind = 'block_diffusion' ('supervised' for conversations)",
                      kind.name));
  c.check(files && !samples && !kind.shards, {"objective.kind", "data.train", "data.valid"},
          fmt::format("{} training needs {}", kind.name, kind.samples));
  c.check(*kind.repeats_positions != 0 && d.model.position == "learned",
          {"model.position", "objective.kind"},
          fmt::format("{}, which 'learned' does not support; set position = 'rope'",
                      kind.repeats_positions));
}

void check_block_diffusion(const Deck& d, Contradictions& c) {
  const Objective& o = d.objective;
  const Data& data = d.data;
  if (!kind_of(d).diffuses) return;
  const bool samples = holds_samples(data), hdp = o.hierarchy == "hdp";
  c.check(o.clip_low > o.clip_high, {"objective.clip_low", "objective.clip_high"},
          fmt::format("{} is above clip_high = {}; lower it", text_of(o.clip_low),
                      text_of(o.clip_high)));
  c.check(hdp && d.model.levels != 0 && d.model.levels != 3,
          {"model.levels", "objective.hierarchy"},
          fmt::format("{}, but hdp has 3 levels: question, plan, execution; set levels = 3 or 0",
                      d.model.levels));
  const std::int64_t all = data.question_tokens + data.plan_tokens + data.execution_tokens;
  c.check(
      samples && d.model.context != all,
      {"model.context", "data.question_tokens", "data.plan_tokens", "data.execution_tokens"},
      fmt::format(
          "{0} is not question_tokens + plan_tokens + execution_tokens = {1}; set context = {1}",
          d.model.context, all));
  const bool files = !data.train.empty() || !data.valid.empty();
  c.check(
      files && !samples && hdp, {"objective.hierarchy", "data.train"},
      "hdp needs samples with question, plan and execution; set train to .json or .jsonl files");
  c.check(hdp && o.plan_block > data.plan_tokens, {"objective.plan_block", "data.plan_tokens"},
          fmt::format("{} is more than plan_tokens = {}; lower it, or set plan_block = 0",
                      o.plan_block, data.plan_tokens));
  c.check(hdp && o.execution_block > data.execution_tokens,
          {"objective.execution_block", "data.execution_tokens"},
          fmt::format("{} is more than execution_tokens = {}; lower it", o.execution_block,
                      data.execution_tokens));
  c.check(
      !hdp && o.block_length > d.model.context, {"objective.block_length", "model.context"},
      fmt::format("{} is more than model.context = {}; lower it", o.block_length, d.model.context));
}

void check_epochs(const Deck& d, Contradictions& c) {
  const bool files = !d.data.train.empty() || !d.data.valid.empty();
  const bool samples = holds_samples(d.data);
  const Campaign plain;
  c.check(
      d.campaign.epochs > 0 && d.campaign.max_steps != plain.max_steps,
      {"campaign.max_steps", "campaign.epochs"},
      fmt::format("{} steps, but epochs = {} sets the steps from the data; remove one of the two",
                  d.campaign.max_steps, d.campaign.epochs));
  c.check(
      d.campaign.epochs > 0 && files && !samples, {"campaign.epochs", "data.train"},
      "epochs are counted over samples (.json, .jsonl), not token shards; set max_steps instead");
}

std::string list_of(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

void check_refinement(const Deck& d, Contradictions& c) {
  const Objective& o = d.objective;
  if (const RefinementPreset* preset = preset_of(o)) {
    const auto against = [&](const char* name, const std::vector<double>& value,
                             const std::vector<double>& its) {
      against_preset(c, name, "objective.preset", o.preset, list_of(value), list_of(its));
    };
    against("objective.weight_base", {o.weight_base}, {preset->weight_base});
    against("objective.reward", {o.reward}, {preset->reward});
    against("objective.refinement_range", o.refinement_range, preset->refinement_range);
    against("objective.norm_range", o.norm_range, preset->norm_range);
  }
  const auto is_range = [](const std::vector<double>& r) { return r.size() == 2 && r[0] < r[1]; };
  c.check(!is_range(o.refinement_range), {"objective.refinement_range"},
          "not two increasing values; set e.g. 0.15, 0.25");
  c.check(!is_range(o.norm_range), {"objective.norm_range"},
          "not two increasing values; set e.g. 0.5, 1.5");
  const ObjectiveKind& kind = kind_of(d);
  const Model plain;
  for (const auto& [given, name] :
       {std::pair(d.model.recursion != plain.recursion, "model.recursion"),
        {d.model.initial_states != plain.initial_states, "model.initial_states"}})
    c.check(given && d.model.inner_steps == 0, {name, "model.inner_steps"},
            "only recursive models use it; set inner_steps = 1 or more, or remove it");
  c.check(d.model.load_rule != plain.load_rule && d.model.load.empty(),
          {"model.load_rule", "model.load"},
          "nothing is loaded; set model.load, or remove load_rule");
  c.check(!kind.refines && o.detach_from > 0, {"objective.detach_from", "objective.kind"},
          "only kind = 'refinement' has steps to detach; set detach_from = 0, or remove it");
  c.check(kind.refines && d.model.inner_steps == 0, {"model.inner_steps", "objective.kind"},
          "refinement needs a recursive model; set inner_steps = 1 or more (e.g. 2)");
  c.check(kind.diffuses && d.model.inner_steps > 0, {"model.inner_steps", "objective.kind"},
          "block diffusion does not support recursive models; set inner_steps = 0");
  c.check(!kind.judged && !d.evaluation.baseline.empty(), {"evaluation.baseline", "objective.kind"},
          "only kind = 'refinement' ends with a verdict; set evaluation.compare_with instead, or "
          "remove it");
  c.check(!kind.refines && d.generation.refine >= 0, {"generation.refine", "objective.kind"},
          "only kind = 'refinement' refines its answers; set refine = -1, or remove it");
  c.check(d.model.logit_cap > 0 && kind.diffuses, {"model.logit_cap"},
          "block diffusion does not support capped logits; set logit_cap = 0");
}

/// Each dropout layer draws from its own stream (ops::DropoutKey).
void check_dropout(const Deck& d, Contradictions& c) {
  const std::int64_t streams = 1 + 2 * d.model.layers * (d.model.inner_steps + 1) * scored_steps(d);
  constexpr std::int64_t most = 4096;
  c.check(d.model.dropout > 0 && streams > most,
          {"model.dropout", "model.layers", "model.inner_steps", "objective.supervision_steps"},
          fmt::format("would be applied at {} places, and at most {} are supported; set dropout = "
                      "0, or reduce layers or inner_steps",
                      streams, most));
}

}  // namespace

void check_contradictions(const Deck& deck, Table& table, Errors& errors) {
  Contradictions c(table, errors);
  check_model(deck.model, c);
  check_experts(deck, c);
  check_connections(deck, c);
  check_growth(deck, c);
  check_sizes(deck, c);
  check_global(deck.batch, deck.parallel.data, c);
  check_precision(deck.precision, c);
  check_batch(deck, c);
  check_lr_rule(deck, c);
  check_data(deck, c);
  check_block_diffusion(deck, c);
  check_epochs(deck, c);
  check_refinement(deck, c);
  check_dropout(deck, c);
  check_schedule(deck, c);
  check_optimizer(deck, c);
  check_parallel(deck, c);
  check_requests(deck, c);
  check_run(deck, c);
}

void check_files(const Deck& deck, Table& table, Errors& errors) {
  Contradictions c(table, errors);
  const std::string& task = deck.campaign.task;
  c.check(task == "train" && deck.data.train.empty(), {"data.train", "campaign.task"},
          "task = 'train' needs training data; set train (e.g. train = 'data/NAME/train_*.bin')");
  const bool answers = task == "evaluate" && !deck.generation.input.empty();
  c.check(task != "generate" && !answers && deck.data.valid.empty(),
          {"data.valid", "campaign.task"},
          fmt::format(
              "task = '{}' needs validation data; set valid (e.g. valid = 'data/NAME/valid_*.bin')",
              task));
}

}  // namespace tern::deck::detail
