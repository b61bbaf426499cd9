/// Learning-rate schedules: pure functions of the step.
#pragma once
#include <cstdint>

#include "deck/deck.hpp"

namespace tern::optimizer {

/// Rate of optimizer step `step` (1 to max_steps). Linear warmup reaches lr at step warmup_steps;
/// then 'cosine' (Loshchilov & Hutter 2017) and 'linear' fall to min_lr at max_steps, 'wsd'
/// (warmup-stable-decay; Hu et al. 2024) stays at lr and falls linearly over the last
/// decay_fraction of max_steps, 'constant' stays.
double learning_rate(const deck::Optimizer& optimizer, std::int64_t step, std::int64_t max_steps);

/// Shares, in [0, 1], of a run that ends by wall time.
struct Elapsed {
  double now;     // over before this step
  double warmup;  // over when the warmup ended
};
/// As above, with shares of wall time for shares of max_steps; the warmup is counted in steps.
double learning_rate(const deck::Optimizer& optimizer, std::int64_t step, const Elapsed& elapsed);

/// Rate of a step of the deck's run, by steps or (max_steps = 0) by wall time, of which `seconds` are
/// over before the step and `warmup_seconds` were when the warmup ended; max_steps is resolved.
double learning_rate(const deck::Deck& deck, std::int64_t step, double seconds,
                     double warmup_seconds);

}  // namespace tern::optimizer
