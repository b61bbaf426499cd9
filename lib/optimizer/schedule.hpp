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

}  // namespace tern::optimizer
