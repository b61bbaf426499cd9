#include "ops/core/replay.hpp"

#include <algorithm>

#include "comm/gpu.hpp"
#include "ops/core/recorder.hpp"

namespace tern::ops {

void Replay::run(const Context& context, const Key& key, const std::function<void()>& work) {
  if (!comm::gpu::built || Recorder::active() || Kokkos::Tools::profileLibraryLoaded())
    return work();
  Known& known = known_[key];
  known.last = ++calls_;
  if (!known.recorded && !known.refused && known.runs >= runs_before) record(context, known, work);
  if (known.recorded) return comm::gpu::replay(known.recorded.get(), context.handle());
  ++known.runs;
  work();
}

void Replay::record(const Context& context, Known& known, const std::function<void()>& work) {
  make_room();
  comm::gpu::begin_recording(context.handle());
  try {
    work();
  } catch (...) {
    comm::gpu::end_recording(context.handle());
    throw;
  }
  known.recorded = comm::gpu::end_recording(context.handle());
  known.refused = !known.recorded;
}

std::size_t Replay::recorded() const {
  return static_cast<std::size_t>(std::count_if(known_.begin(), known_.end(), [](const auto& one) {
    return one.second.recorded != nullptr;
  }));
}

/// Drops the recording that was used longest ago, if there are too many.
void Replay::make_room() {
  if (recorded() < most) return;
  auto oldest = known_.end();
  for (auto one = known_.begin(); one != known_.end(); ++one)
    if (one->second.recorded && (oldest == known_.end() || one->second.last < oldest->second.last))
      oldest = one;
  oldest->second = {};
}

}  // namespace tern::ops
