/// Which rows of a data set each optimizer step takes.
#pragma once
#include <cstdint>

namespace tern::data {

/// Rows of a data set, and samples in them; 0: not known.
struct SetSize {
  std::uint64_t rows = 0, samples = 0;

  bool known() const { return rows > 0; }
  double per_row() const {
    return known() ? static_cast<double>(samples) / static_cast<double>(rows) : 1;
  }
};

/// Steps of `count` samples of a set whose `rows` hold `samples`. Rows stay whole: step s, from 0,
/// takes the rows [first(s), first(s + 1)) with first(s) = floor(s x count x rows / samples), which
/// differ by one at most in number. An epoch has samples / count steps, on any number of ranks.
/// With rows = samples, steps of `count` rows.
///
/// With growth > 0, which is for rows = samples, step s < growth takes only `start` x (1 + floor(s
/// (count / start - 1) / growth)) rows: from `start` up to `count` by multiples of `start`.
struct StepRows {
  std::uint64_t count = 1, rows = 1, samples = 1;
  std::uint64_t start = 0, growth = 0;

  /// Global row number of the first row of a step.
  std::uint64_t first(std::uint64_t step) const {
    if (growth > 0) return first_of_growing(step);
    const std::uint64_t before = step * count;
    return before / samples * rows + before % samples * rows / samples;
  }
  std::uint64_t of(std::uint64_t step) const { return first(step + 1) - first(step); }
  /// Rows of the first `steps` steps; on average over the data.
  double rows_in(std::uint64_t steps) const {
    return growth > 0 ? static_cast<double>(first(steps)) : static_cast<double>(steps) * mean();
  }
  /// Rows of the largest step.
  std::uint64_t most() const { return (count * rows + samples - 1) / samples; }
  /// Mean rows of a step, once it has grown.
  double mean() const {
    return static_cast<double>(count) * static_cast<double>(rows) / static_cast<double>(samples);
  }

 private:
  std::uint64_t first_of_growing(std::uint64_t step) const {
    const std::uint64_t more = count / start - 1, grown = step < growth ? step : growth;
    std::uint64_t units = grown;
    for (std::uint64_t i = 1; i <= more; ++i) {
      const std::uint64_t from = (i * growth + more - 1) / more;  // first step of i + 1 units
      if (from >= grown) break;
      units += grown - from;
    }
    return units * start + (step - grown) * count;
  }
};

}  // namespace tern::data
