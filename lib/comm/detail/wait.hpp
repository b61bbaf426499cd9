/// Registry of this rank's waits for other ranks, read by the watchdog.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tern::comm::detail {

using Clock = std::chrono::steady_clock;

/// An operation among ranks.
struct Operation {
  const char* name;  // a literal
  std::size_t bytes = 0;
  std::shared_ptr<const std::string> group = {};  // from members_text()
  int to = -1, from = -1;                         // messages: ranks of the group
};

/// "the 2 ranks of 'data' (0, 2)"; all: "all 4 ranks".
std::string members_text(const std::string& name, const std::vector<int>& world_ranks, bool all);

/// Scope in which this rank is inside a call. Only in the thread that calls MPI.
class Wait {
 public:
  explicit Wait(const Operation& operation);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

/// Tracks enqueued device operations of one group, one at a time, wherever the calling thread waits
/// for the device.
class Followed {
 public:
  Followed();
  ~Followed();
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;
  /// Whether an operation is being tracked.
  bool busy() const;
  void begin(const Operation& operation);
  void end();
};

/// A registered wait; longest_wait() returns the oldest.
struct Waited {
  Operation operation;
  Clock::time_point since;
  bool on_device = false;
};
std::optional<Waited> longest_wait();

/// True inside the scope of a LongWait.
bool within_long_wait();

/// Message for a wait of `seconds`, longer than `limit` (seconds).
std::string overdue_text(const Waited& waited, double seconds, double limit, bool within_long);

}  // namespace tern::comm::detail
