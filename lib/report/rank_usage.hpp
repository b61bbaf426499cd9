/// What all ranks report of a log interval: metrics of their devices, and the slowest rank.
#pragma once
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "profile/device_usage.hpp"
#include "report/metrics.hpp"

namespace tern::report {

/// What one rank reports. Times in seconds.
struct RankInterval {
  double wall = 0;     // in steps
  double waited = 0;   // for data
  double compute = 0;  // forward and backward per step, without waits for others; 0: not measured
  /// Ranks with the same number have the same work per step, and are compared.
  int stage = 0;
  profile::DeviceUsage usage;
  double cores = 0;  // processor time per time: cores in use by the process
};

/// Rank that computes longer than others of its stage.
struct SlowestRank {
  int rank;
  double compute;  // its seconds per step
  double excess;   // relative to the median of the others
};

class RankUsage {
 public:
  /// Excess from which the log names the slowest rank.
  static constexpr double margin = 0.1;

  /// One all-reduce. Collective.
  RankUsage(const RankInterval& mine, comm::Group& group);

  /// The longest over ranks.
  double wall() const { return of_all(&RankInterval::wall).most; }
  double waited() const { return of_all(&RankInterval::waited).most; }

  /// system/...: bytes as the largest over ranks, those of GPUs in builds for GPUs only; of a GPU's readings mean and extreme over the
  /// ranks that report them, and which is the hottest; the slowest rank and its excess.
  Values metrics() const;
  /// The one with the largest excess; nothing if no rank has another to be compared with.
  std::optional<SlowestRank> slowest() const;

 private:
  struct Extremes {
    double least, mean, most;
    int rank;  // of the most
  };
  template <class Read>
  std::optional<Extremes> over_ranks(const Read& read) const;
  Extremes of_all(double RankInterval::*field) const;

  std::vector<RankInterval> ranks_;
};

}  // namespace tern::report
