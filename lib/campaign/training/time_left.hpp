/// Estimate of the time until a training run ends.
#pragma once
#include <cstdint>
#include <optional>

#include "deck/deck.hpp"

namespace tern::campaign {

/// The seconds per row of training are an exponentially weighted mean over the steps, whose weight
/// falls to 1/e over 10 minutes or over 100 steps, whichever is longer: an interval in which another
/// process had the machine moves it little. The first step of a start loads kernels and
/// fills caches; it does not count. An evaluation takes the mean of the latest ones, each weighing
/// half of the one after; before the first one, a third of the training time of its rows, as in
/// plan::Course, and a checkpoint. Likewise a checkpoint, 0 before the first. Local to a rank; it
/// reads no clock.
class TimeLeft {
 public:
  explicit TimeLeft(const deck::Deck& deck) : deck_(deck) {}

  /// A step of `rows` rows over all ranks.
  void step(double seconds, double rows);
  /// Checkpoint included.
  void evaluated(double seconds) { add(evaluation_, seconds); }
  void saved(double seconds) { add(save_, seconds); }

  /// Seconds from the end of step `step`, whose own evaluation and checkpoint are still to come.
  /// `rows_left`: of the steps to come. `elapsed`: seconds that count toward max_hours. Whichever
  /// of max_steps and max_hours ends the run first; the last evaluation follows in both cases.
  /// Nothing while only max_steps limits a run whose rate is not known yet.
  std::optional<double> seconds(std::int64_t step, double rows_left, double elapsed) const;

 private:
  static void add(std::optional<double>& mean, double seconds) {
    mean = mean ? (*mean + seconds) / 2 : seconds;
  }

  deck::Deck deck_;
  bool started_ = false;           // past the first step
  double seconds_ = 0, rows_ = 0;  // weighted sums
  std::optional<double> evaluation_, save_;
};

}  // namespace tern::campaign
