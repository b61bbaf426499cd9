#include "profile/phases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "comm/waits.hpp"

namespace tern::profile {
namespace {

constexpr std::size_t device_phases = static_cast<std::size_t>(Phase::data);

bool on_device(Phase phase) { return static_cast<std::size_t>(phase) < device_phases; }

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

const char* phase_name(Phase phase) {
  constexpr const char* names[phase_count] = {"forward", "backward", "optimizer",  "communication",
                                              "data",    "output",   "evaluation", "checkpoint"};
  return names[static_cast<std::size_t>(phase)];
}

Phases::Scope::Scope(Phases* phases, Phase phase) : phases_(phases), phase_(phase) {
  if (!phases_) return;
  if (on_device(phase_) && phases_->fence_) phases_->fence_();
  outer_ = phases_->innermost_;
  phases_->innermost_ = this;
  earlier_waits_ = comm::seconds_with_others();
  start_ = std::chrono::steady_clock::now();
}

Phases::Scope::~Scope() {
  if (!phases_) return;
  if (on_device(phase_) && phases_->fence_) phases_->fence_();
  const double seconds = seconds_between(start_, std::chrono::steady_clock::now());
  const double waits = comm::seconds_with_others() - earlier_waits_;
  phases_->seconds_[static_cast<std::size_t>(phase_)] += seconds - inner_seconds_;
  if (phase_ == Phase::forward || phase_ == Phase::backward)
    phases_->compute_seconds_ += seconds - inner_seconds_ - (waits - inner_waits_);
  phases_->innermost_ = outer_;
  if (!outer_) return;
  outer_->inner_seconds_ += seconds;
  outer_->inner_waits_ += waits;
}

Phases::Phases(Fence fence) : fence_(std::move(fence)), start_(std::chrono::steady_clock::now()) {}

void Phases::begin_step(bool sampled) {
  TERN_REQUIRE(!innermost_, "a step begins within the phase {}", phase_name(innermost_->phase_));
  sampled_ = sampled;
  ++steps_;
  if (!sampled) return;
  ++sampled_steps_;
  ++compute_steps_;
}

Phases::Scope Phases::scope(Phase phase) {
  return Scope(on_device(phase) && !sampled_ ? nullptr : this, phase);
}

double Phases::seconds(Phase phase) const {
  const double measured = seconds_[static_cast<std::size_t>(phase)];
  return on_device(phase) && sampled_steps_ > 0 ? measured * double(steps_) / double(sampled_steps_)
                                                : measured;
}

double Phases::take_compute_seconds() {
  const double mean = compute_steps_ > 0 ? compute_seconds_ / double(compute_steps_) : 0;
  compute_seconds_ = 0;
  compute_steps_ = 0;
  return mean;
}

double Phases::total_seconds() const {
  return seconds_between(start_, std::chrono::steady_clock::now());
}

std::string Phases::table(comm::Group& group) const {
  std::array<double, phase_count + 2> mine{};  // phases, other, total
  double phases_sum = 0;
  for (std::size_t i = 0; i < phase_count; ++i)
    phases_sum += mine[i] = seconds(static_cast<Phase>(i));
  mine[phase_count + 1] = total_seconds();
  // Scaled samples may exceed the total slightly.
  mine[phase_count] = std::max(0.0, mine[phase_count + 1] - phases_sum);
  auto low = mine, mean = mine, high = mine;
  group.all_reduce(low.data(), low.size(), comm::Sum::min);
  group.all_reduce(mean.data(), mean.size(), comm::Sum::sum);
  group.all_reduce(high.data(), high.size(), comm::Sum::max);

  std::string out = fmt::format("{:<15}{:>12}{:>12}{:>12}{:>9}\n", "phase", "minimum s", "mean s",
                                "maximum s", "fraction");
  const double total = mean[phase_count + 1];
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const char* name = i < phase_count    ? phase_name(static_cast<Phase>(i))
                       : i == phase_count ? "other"
                                          : "total";
    out += fmt::format("{:<15}{:>12.2f}{:>12.2f}{:>12.2f}{:>8.1f}%\n", name, low[i],
                       mean[i] / group.size(), high[i], total > 0 ? 100 * mean[i] / total : 0.0);
  }
  return out;
}

}  // namespace tern::profile
