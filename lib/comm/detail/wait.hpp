/// What this rank waits for, noted where it waits and read by the thread that ends waits without
/// end.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tern::comm::detail {

using Clock = std::chrono::steady_clock;

/// An operation that other ranks take part in.
struct Operation {
  const char* name;  // a literal
  std::size_t bytes = 0;
  std::shared_ptr<const std::string> group = {};  // as members_text() has it
  int to = -1, from = -1;                         // of a message: ranks of the group
};

/// "the 2 ranks of 'data' (0, 2)"; all: "all 4 ranks".
std::string members_text(const std::string& name, const std::vector<int>& world_ranks, bool all);

/// Notes that this rank is within a call, as long as it lives. By the one thread that calls MPI.
class Wait {
 public:
  explicit Wait(const Operation& operation);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

/// Operations that a device has been given: of those of one group, one is followed to its end, then
/// a later one. Where the calling thread waits for the device does not matter then.
class Followed {
 public:
  Followed();
  ~Followed();
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;
  /// Whether one is being followed.
  bool busy() const;
  void begin(const Operation& operation);
  void end();
};

/// Of what is waited for, that which has lasted longest.
struct Waited {
  Operation operation;
  Clock::time_point since;
  bool on_device = false;
};
std::optional<Waited> longest_wait();

/// True in the scope of a LongWait.
bool within_long_wait();

/// What to say of a wait of `seconds`, of which `limit` would have been in order.
std::string overdue_text(const Waited& waited, double seconds, double limit, bool within_long);

}  // namespace tern::comm::detail
