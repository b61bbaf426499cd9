/// Sources of a profile's events.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/core/recorder.hpp"

namespace tern::profile::detail {

struct Call {
  std::string operation;
  ops::Work work;
};

/// Kernel, copy or set on a device; on the host, a call.
struct Event {
  std::string kernel;
  std::int64_t call;      // index; < 0: of no operation
  std::uint32_t lane;     // stream
  double begin, seconds;  // since the start of the recording
};

struct Recording {
  std::vector<Call> calls;
  std::vector<Event> events;  // by begin
  double seconds = 0;
};

/// Records from its construction. Told of operations by the thread that constructed it.
class Tracer : public ops::Recorder {
 public:
  /// All work has ended. Called once.
  virtual Recording finish() = 0;
};

/// For this build's device. Null, and why, if it cannot be traced.
std::unique_ptr<Tracer> make_tracer(std::string& trouble);

}  // namespace tern::profile::detail
