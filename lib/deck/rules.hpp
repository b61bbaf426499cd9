/// What follows from several values of a deck.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::deck {

/// Whether &data names samples (.json, .jsonl, .ndjson) rather than token shards.
bool holds_samples(const Data& data);
/// Whether block diffusion is given the question clean.
bool conditioned(const Deck& deck);

/// A named batch: sequences of a micro-step of a rank, and of an optimizer step.
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
/// Sequences of a micro-step on a rank: the preset's, or as given; 0: the most that memory allows.
std::int64_t per_rank_of(const Batch& batch);
constexpr std::int64_t largest_global = 1 << 30;
/// Sequences of an optimizer step: the preset's, or as given; 0: per_rank x ranks x accumulation.
std::int64_t global_of(const Batch& batch);

/// What of a deck does not go with &parallel shard = 'full', whether or not it says so: fields,
/// "group.name", and why, with what to write.
struct Conflict {
  std::vector<const char*> names;
  const char* text;
};
std::vector<Conflict> conflicts_with_full(const Deck& deck);

/// A named setting of recursive refinement: weights of the steps' losses, and what a verdict
/// expects.
struct RefinementPreset {
  const char* name;
  double weight_base, reward;
  std::vector<double> refinement_range, norm_range;
};
const std::vector<RefinementPreset>& refinement_presets();
/// The preset of &objective; null for 'none'.
const RefinementPreset* preset_of(const Objective& objective);

/// The highest learning rate: by lr_rule, or as given; 0 where the rule has none.
double lr_of(const Deck& deck);
/// The learning rate of &optimizer lr_rule for a global batch: 'sqrt' scales 3e-4 at 128 by the
/// root (Malladi et al. 2022), 'table' knows 128, 256, 512 and 1024; 0 where there is none.
double ruled_lr(const std::string& rule, std::int64_t global);

}  // namespace tern::deck
