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

}  // namespace tern::optimizer
