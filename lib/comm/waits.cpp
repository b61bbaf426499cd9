#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "comm/detail/wait.hpp"
#include "comm/detail/yield.hpp"
#include "comm/waits.hpp"

namespace tern::comm {
namespace detail {
namespace {

constexpr std::size_t members_shown = 16;

std::mutex mutex;                            // guards being_waited
std::map<const void*, Waited> being_waited;  // key: the Wait or Followed
std::atomic<int> long_waits = 0;
double seconds_inside = 0;  // of the thread that calls MPI

void note(const void* by, const Operation& operation, bool on_device) {
  const std::lock_guard lock(mutex);
  being_waited[by] = {operation, Clock::now(), on_device};
}
void forget(const void* by) {
  const std::lock_guard lock(mutex);
  being_waited.erase(by);
}

std::string text(const Operation& operation) {
  std::string text = operation.name;
  if (operation.bytes > 0) text += fmt::format(" of {} bytes", operation.bytes);
  if (operation.from >= 0) text += fmt::format(" from its rank {}", operation.from);
  if (operation.to >= 0) text += fmt::format(" to its rank {}", operation.to);
  return operation.group ? fmt::format("{} among {}", text, *operation.group) : text;
}

/// Local time of a steady-clock time point.
std::string time_text(Clock::time_point at) {
  using System = std::chrono::system_clock;
  const auto then = System::now() - std::chrono::duration_cast<System::duration>(Clock::now() - at);
  const std::time_t seconds = System::to_time_t(then);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

}  // namespace

std::string members_text(const std::string& name, const std::vector<int>& world_ranks, bool all) {
  if (all) return fmt::format("all {} ranks", world_ranks.size());
  const auto shown = static_cast<std::ptrdiff_t>(std::min(members_shown, world_ranks.size()));
  return fmt::format("the {} ranks of '{}' ({}{})", world_ranks.size(), name,
                     fmt::join(world_ranks.begin(), world_ranks.begin() + shown, ", "),
                     world_ranks.size() > members_shown ? ", ..." : "");
}

Wait::Wait(const Operation& operation) {
  note(this, operation, false);
  begin_wait();
}
Wait::~Wait() {
  seconds_inside += std::chrono::duration<double>(end_wait()).count();
  forget(this);
}

Followed::Followed() = default;
Followed::~Followed() { forget(this); }
bool Followed::busy() const {
  const std::lock_guard lock(mutex);
  return being_waited.contains(this);
}
void Followed::begin(const Operation& operation) { note(this, operation, true); }
void Followed::end() { forget(this); }

std::optional<Waited> longest_wait() {
  const std::lock_guard lock(mutex);
  const auto first = std::min_element(
      being_waited.begin(), being_waited.end(),
      [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
  if (first == being_waited.end()) return std::nullopt;
  return first->second;
}

bool within_long_wait() { return long_waits > 0; }

std::string overdue_text(const Waited& waited, double seconds, double limit, bool within_long) {
  return fmt::format(
      "has waited {:.3g} minutes, since {}, {}: longer than {}&parallel wait_minutes = {:g}. Look "
      "at the ranks that do not print this message: they have not arrived",
      seconds / 60, time_text(waited.since),
      (waited.on_device ? "for its device to finish " : "in ") + text(waited.operation),
      within_long ? fmt::format("{} x ", long_wait_factor) : "", limit / 60);
}

}  // namespace detail

LongWait::LongWait() { ++detail::long_waits; }
LongWait::~LongWait() { --detail::long_waits; }

double seconds_with_others() { return detail::seconds_inside; }

}  // namespace tern::comm
