/// Detection of loss spikes.
#pragma once
#include <cmath>
#include <cstdint>

namespace tern::campaign {

/// Exponential mean and standard deviation of the loss over about 100 steps; a loss more than
/// `sigmas` deviations plus 1% above the mean is a spike, and does not enter the mean.
class SpikeDetector {
 public:
  explicit SpikeDetector(double sigmas = 6) : sigmas_(sigmas) {}

  /// True if `loss` is a spike. The first 20 losses never are.
  bool is_spike(double loss) {
    const double deviation = std::sqrt(variance_);
    if (seen_ >= 20 && loss > mean_ + sigmas_ * deviation + 0.01 * std::abs(mean_)) {
      if (++spikes_in_row_ < 10) return true;
      seen_ = 0;  // a new level rather than a spike: start over
    }
    spikes_in_row_ = 0;
    const double weight = seen_ < 100 ? 1.0 / static_cast<double>(seen_ + 1) : 0.01;
    const double difference = loss - mean_;
    mean_ += weight * difference;
    variance_ = (1 - weight) * (variance_ + weight * difference * difference);
    ++seen_;
    return false;
  }
  double mean() const { return mean_; }

 private:
  double sigmas_, mean_ = 0, variance_ = 0;
  std::int64_t seen_ = 0;
  int spikes_in_row_ = 0;
};

}  // namespace tern::campaign
