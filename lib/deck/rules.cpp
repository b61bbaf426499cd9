#include "deck/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "deck/objective_kind.hpp"
#include "deck/optimizer_kind.hpp"

namespace tern::deck {
namespace {

bool is_json(std::string_view path) {
  const auto ends = [&](std::string_view suffix) { return path.ends_with(suffix); };
  return ends(".json") || ends(".jsonl") || ends(".ndjson");
}

struct Rate {
  std::int64_t global;
  double lr;
};
/// Each of &batch preset has a row. That of 768 is between its neighbors, by logarithms or not.
constexpr Rate rates[] = {{128, 3e-4}, {256, 4e-4}, {512, 5e-4}, {768, 6e-4}, {1024, 7e-4}};

}  // namespace

bool holds_samples(const Data& data) {
  return std::any_of(data.train.begin(), data.train.end(), is_json) ||
         std::any_of(data.valid.begin(), data.valid.end(), is_json);
}

std::int64_t head_size_of(const Model& model) { return model.head_dim > 0 ? model.head_dim : 64; }

std::int64_t block_tokens(const Objective& objective) {
  return objective.hierarchy == "hdp" ? objective.execution_block : objective.block_length;
}

bool conditioned(const Deck& deck) {
  const Objective& o = deck.objective;
  return kind_of(deck).diffuses && holds_samples(deck.data) &&
         (o.hierarchy == "hdp" || o.condition == "question");
}

const BatchPreset* preset_of(const Batch& batch) {
  for (const BatchPreset& preset : batch_presets)
    if (batch.preset == preset.name) return &preset;
  return nullptr;
}

std::int64_t per_rank_of(const Batch& batch) {
  const BatchPreset* preset = preset_of(batch);
  return preset ? preset->per_rank : batch.per_rank;
}

std::int64_t global_of(const Batch& batch) {
  const BatchPreset* preset = preset_of(batch);
  return preset ? preset->global : batch.global;
}

bool counts_samples(const Batch& batch) { return batch.unit == "samples"; }

std::vector<Conflict> conflicts_with_full(const Deck& d) {
  std::vector<Conflict> all;
  if (d.parallel.tensor * d.parallel.pipeline > 1)
    all.push_back({{"parallel.tensor", "parallel.pipeline"},
                   "'full' cannot be combined with tensor or pipeline parallelism; set shard = "
                   "'optimizer', or tensor = 1 and pipeline = 1"});
  if (const OptimizerKind& kind = kind_of(d.optimizer); kind.whole_matrices)
    all.push_back(
        {{"optimizer.kind"},
         fmt::format("'full' divides matrices, which {} needs whole; set shard = 'optimizer'",
                     kind.title)});
  if (kind_of(d).diffuses && d.evaluation.problems > 0)
    all.push_back({{"evaluation.problems"},
                   "with 'full', ranks cannot solve problems independently; set shard = "
                   "'optimizer' or problems = 0"});
  return all;
}

const std::vector<RefinementPreset>& refinement_presets() {
  static const std::vector<RefinementPreset> presets{{"aggressive", 5, 1, {0.15, 0.25}, {0.5, 1.5}},
                                                     {"extreme", 10, 2, {0.5, 0.97}, {2, 15}}};
  return presets;
}

const RefinementPreset* preset_of(const Objective& objective) {
  for (const RefinementPreset& preset : refinement_presets())
    if (objective.preset == preset.name) return &preset;
  return nullptr;
}

bool timed(const Campaign& campaign) { return campaign.max_steps == 0 && campaign.epochs == 0; }

bool windowed(const Model& model) { return model.window > 0 || model.window_start > 0; }

bool stores_fp32(const Precision& precision) {
  return precision.compute == "fp32" || precision.compute == "tf32";
}

double lr_of(const Deck& deck) {
  const Optimizer& o = deck.optimizer;
  return o.lr_rule == "none" ? o.lr : ruled_lr(o.lr_rule, global_of(deck.batch));
}

double ruled_lr(const std::string& rule, std::int64_t global) {
  if (rule == "sqrt") return 3e-4 * std::sqrt(static_cast<double>(global) / 128);
  for (const Rate& rate : rates)
    if (rule == "table" && rate.global == global) return rate.lr;
  return 0;
}

}  // namespace tern::deck
