// Connections between blocks, value embeddings, and what grows over the first steps.
#include <fmt/format.h>

#include "deck/detail/contradictions.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"

namespace tern::deck::detail {

void check_connections(const Deck& d, Contradictions& c) {
  const Model& m = d.model;
  c.check(m.skip_connections && m.layers < 3, {"model.skip_connections", "model.layers"},
          fmt::format("{} layers have no two that are not adjacent; set layers = 3 or more, or "
                      "skip_connections = .false.",
                      m.layers));
  c.check(2 * m.value_embeddings > m.layers, {"model.value_embeddings", "model.layers"},
          fmt::format("{} tables for the first and again for the last of {} layers; set "
                      "value_embeddings = {} or less",
                      m.value_embeddings, m.layers, m.layers / 2));
  const std::int64_t kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  c.check(m.value_embeddings > 0 && kv_heads > 0 && d.parallel.tensor > kv_heads,
          {"model.value_embeddings", "parallel.tensor", "model.kv_heads"},
          fmt::format("{} tensor ranks cannot divide the value embeddings of {} key-value heads; "
                      "set tensor = {} or less, or value_embeddings = 0",
                      d.parallel.tensor, kv_heads, kv_heads));
  for (const auto& [given, name] : {std::pair(m.skip_connections, "model.skip_connections"),
                                    {m.input_shortcut, "model.input_shortcut"},
                                    {m.value_embeddings > 0, "model.value_embeddings"}}) {
    c.check(given && m.inner_steps > 0, {name, "model.inner_steps"},
            "recursive models do not support it; set inner_steps = 0, or remove it");
    c.check(given && d.parallel.pipeline > 1, {name, "parallel.pipeline"},
            "a pipeline stage does not have the blocks and tokens of the others; set pipeline = 1, "
            "or use parallel.tensor");
  }
}

namespace {

void check_batch_growth(const Deck& d, Contradictions& c) {
  const Batch& b = d.batch;
  c.check(
      (b.global_start > 0) != (b.growth_steps > 0), {"batch.global_start", "batch.growth_steps"},
      "a growing batch needs global_start and growth_steps; set the other one too, or both to 0");
  if (b.global_start == 0) return;
  const std::int64_t global = global_of(b);
  c.check(counts_samples(b), {"batch.global_start", "batch.unit"},
          "only batches of rows can grow; set unit = 'rows' or global_start = 0");
  c.check(d.campaign.epochs > 0, {"batch.global_start", "campaign.epochs"},
          "the steps of an epoch are counted for a constant batch; set max_steps instead of "
          "epochs, or global_start = 0");
  c.check(global == 0, {"batch.global_start", "batch.global", "batch.preset"},
          "the batch grows to batch.global, which is not set; set global (e.g. global = 256) or a "
          "preset");
  c.check(global > 0 && global % b.global_start != 0, {"batch.global_start", "batch.global"},
          fmt::format("{} does not divide global = {}, to which the batch grows in multiples; set "
                      "global_start to a divisor of global",
                      b.global_start, global));
  const std::int64_t unit =
      std::max<std::int64_t>(per_rank_of(b), 1) * std::max<std::int64_t>(d.parallel.data, 1);
  c.check(b.global_start % unit != 0, {"batch.global_start", "batch.per_rank", "parallel.data"},
          fmt::format("{0} is not a multiple of per_rank x parallel.data = {1}; set global_start = "
                      "{1} or a multiple of it",
                      b.global_start, unit));
}

void check_window(const Deck& d, Contradictions& c) {
  const Model& m = d.model;
  c.check(
      (m.window_start > 0) != (m.window_steps > 0), {"model.window_start", "model.window_steps"},
      "a growing window needs window_start and window_steps; set the other one too, or both to 0");
  const std::int64_t last = m.window > 0 ? m.window : m.context;
  c.check(m.window_start > last, {"model.window_start", "model.window", "model.context"},
          fmt::format("{} is more than the {} tokens that the window grows to; lower it",
                      m.window_start, last));
  c.check(windowed(m) && !kind_of(d).windows,
          {m.window > 0 ? "model.window" : "model.window_start", "objective.kind"},
          fmt::format(
              "kind = '{}' has an attention mask of its own; set it to 0, or set kind = 'causal'",
              d.objective.kind));
  const bool generates =
      d.campaign.task == "generate" || d.generation.samples > 0 || !d.generation.input.empty();
  c.check(m.window > 0 && m.window < m.context && generates,
          {"model.window", "generation.samples", "generation.input", "campaign.task"},
          "generation attends to all tokens and does not support a window; set generation.samples "
          "= 0 or window = 0");
}

}  // namespace

void check_growth(const Deck& d, Contradictions& c) {
  check_batch_growth(d, c);
  check_window(d, c);
}

}  // namespace tern::deck::detail
