/// State of a training run, without its arrays: the attributes of a checkpoint.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "checkpoint/checkpoint.hpp"

namespace tern::campaign {

struct TrainState {
  std::int64_t step = 0;     // optimizer steps, skipped ones included
  std::int64_t tokens = 0;   // consumed over all ranks
  std::int64_t updates = 0;  // steps applied
  std::int64_t skipped = 0, skipped_in_row = 0;
  double loss_scale = 0;              // fp16: of the next step; 0: the deck's
  std::int64_t loss_scale_steps = 0;  // applied since it changed
  std::int64_t overflowed = 0;        // steps skipped to lower it; not among `skipped`
  double seconds = 0;         // wall time over all restarts, start-up and evaluations included
  double joules = 0;          // energy of all ranks' devices, likewise
  double warmup_seconds = 0;  // wall time when the warmup ended; 0: not yet
  std::int64_t evaluated_step = -1;  // last evaluated step; -1: none
  double validation_loss = std::numeric_limits<double>::infinity();  // at evaluated_step
  double best_loss = std::numeric_limits<double>::infinity();
  std::int64_t best_step = 0;
  std::int64_t evaluations_without_gain = 0;
  /// Sum modulo 2^64 of sample_hash over all samples consumed by all ranks: equal for two runs that
  /// consumed the same samples equally often, in any order and layout.
  std::uint64_t samples_hash = 0;
};

/// Hash of a global sample number (SplitMix64's finalizer; Steele, Lea & Flood 2014).
std::uint64_t sample_hash(std::uint64_t sample);

/// All fields but step and tokens, by name.
std::map<std::string, double> to_numbers(const TrainState& state);
checkpoint::Header to_header(const TrainState& state, const std::string& deck_text);
TrainState from_header(const checkpoint::Header& header);

}  // namespace tern::campaign
