/// Time of a run by phase: the table at its end.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/comm.hpp"

namespace tern::profile {

enum class Phase {
  // device: counted in sampled steps only
  forward,
  backward,
  optimizer,
  communication,
  // host: always counted
  data,
  output,
  evaluation,
  checkpoint
};
constexpr std::size_t phase_count = 8;
const char* phase_name(Phase phase);

/// Seconds by phase, measured with scopes:
///
///     phases.begin_step(step % 10 == 0);               // fences in one step of ten
///     { auto timed = phases.scope(Phase::forward); model.forward(...); }
///
/// Device work is asynchronous: a device phase is timed between two calls of `fence`, in sampled
/// steps only; in other steps its scope does nothing. The table scales device phases with steps /
/// sampled steps. Host builds sample all steps. Scopes may nest: a phase is charged the time of its
/// scope less that of inner scopes. One thread.
class Phases {
 public:
  using Fence = std::function<void()>;
  explicit Phases(Fence fence = {});

  class Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Phases;
    Scope(Phases* phases, Phase phase);  // null: counts nothing
    Phases* phases_;
    Phase phase_;
    Scope* outer_ = nullptr;
    double inner_seconds_ = 0, inner_waits_ = 0, earlier_waits_ = 0;
    std::chrono::steady_clock::time_point start_;
  };

  void begin_step(bool sampled);
  [[nodiscard]] Scope scope(Phase phase);

  /// This rank's seconds in a phase, scaled as in the table.
  double seconds(Phase phase) const;
  /// Seconds since construction.
  double total_seconds() const;
  /// Mean seconds of forward and backward per step sampled since the last call, without waits for
  /// other ranks (comm::seconds_with_others); 0 if none was. On GPUs the waits of device
  /// collectives within a pass, of tensor, pipeline and fully sharded ranks, count as computing.
  double take_compute_seconds();

  /// One line per phase: minimum, mean and maximum over ranks, and the mean's fraction of the
  /// total. Collective.
  ///
  ///     phase          minimum s     mean s  maximum s   share
  ///     forward            10.20      10.31      10.42   31.2%
  ///     ...
  ///     other               0.20       0.31       0.42    0.9%
  ///     total              33.00      33.01      33.02  100.0%
  std::string table(comm::Group& group) const;

 private:
  Fence fence_;
  std::array<double, phase_count> seconds_{};
  std::int64_t steps_ = 0, sampled_steps_ = 0;
  double compute_seconds_ = 0;  // since the last take, of:
  std::int64_t compute_steps_ = 0;
  bool sampled_ = true;
  Scope* innermost_ = nullptr;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tern::profile
