/// What follows from several values of a deck.
#pragma once
#include <cstdint>
#include <string>

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
/// The learning rate of &optimizer lr_rule for a global batch: 'sqrt' scales 3e-4 at 128 by the
/// root (Malladi et al. 2022), 'table' knows 128, 256, 512 and 1024; 0 where there is none.
double ruled_lr(const std::string& rule, std::int64_t global);

}  // namespace tern::deck
