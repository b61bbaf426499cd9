/// Values derived from several fields of a deck.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::deck {

/// Whether &data names samples (.json, .jsonl, .ndjson) rather than token shards.
bool holds_samples(const Data& data);
/// Whether wall time ends the run, and its schedule runs over that.
bool timed(const Campaign& campaign);
/// Size of a head where heads = 0: head_dim, or 64 if that is 0.
std::int64_t head_size_of(const Model& model);
/// Tokens per block of the (last) level.
std::int64_t block_tokens(const Objective& objective);
/// Whether block diffusion is conditioned on the clean question.
bool conditioned(const Deck& deck);

/// Named batch sizes: sequences per micro-batch and rank, and per optimizer step.
struct BatchPreset {
  const char* name;
  std::int64_t per_rank, global;
};
constexpr BatchPreset batch_presets[] = {{"conservative", 64, 256},
                                         {"recommended", 128, 512},
                                         {"aggressive", 192, 768},
                                         {"extreme", 256, 1024}};
/// The preset of &batch; null for 'none'.
const BatchPreset* preset_of(const Batch& batch);
/// Sequences per micro-batch and rank: the preset's, or as given; 0: the most that memory allows.
std::int64_t per_rank_of(const Batch& batch);
constexpr std::int64_t largest_global = 1 << 30;
/// Sequences or samples (&batch unit) per optimizer step: as given or from the preset; 0: per_rank x
/// data ranks x accumulation.
std::int64_t global_of(const Batch& batch);
/// Whether batch.global counts samples packed in rows, rather than rows.
bool counts_samples(const Batch& batch);

/// Settings incompatible with &parallel shard = 'full', whatever the deck's shard is: fields
/// ("group.name"), and the reason with a remedy.
struct Conflict {
  std::vector<const char*> names;
  std::string text;
};
std::vector<Conflict> conflicts_with_full(const Deck& deck);

/// Preset of recursive refinement: weights of the steps' losses, and ranges of the verdict.
struct RefinementPreset {
  const char* name;
  double weight_base, reward;
  std::vector<double> refinement_range, norm_range;
};
const std::vector<RefinementPreset>& refinement_presets();
/// The preset of &objective; null for 'none'.
const RefinementPreset* preset_of(const Objective& objective);

/// Whether weights and activations are stored as float32.
bool stores_fp32(const Precision& precision);
/// Whether attention is limited to a window in some step.
bool windowed(const Model& model);
/// Bound of the loss scale in fp16, at which gradients of 2^-24 are well within range.
constexpr double largest_loss_scale = 1 << 24;

/// Peak learning rate: from lr_rule, or as given; 0 if the rule has none.
double lr_of(const Deck& deck);
/// Learning rate of &optimizer lr_rule for a global batch: 'sqrt' scales 3e-4 at 128 with the
/// square root (Malladi et al. 2022), 'table' has 128, 256, 512, 768 and 1024; otherwise 0.
double ruled_lr(const std::string& rule, std::int64_t global);

}  // namespace tern::deck
