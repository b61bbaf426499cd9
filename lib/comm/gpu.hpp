/// This rank's GPU as its runtime, CUDA or HIP, knows it: identity, memory, streams and events. The
/// only header that knows both; kernels are Kokkos' business. In builds for the host there is no
/// GPU: names are empty, streams and events null, and marks do nothing.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tern::comm::gpu {

#if defined(TERN_WITH_CUDA) || defined(TERN_WITH_HIP)
constexpr bool built = true;  // for GPUs
#else
constexpr bool built = false;
#endif

/// GPUs that this process sees; if none, `why` is the runtime's message.
int count(std::string& why);
/// Name that no other GPU of the node has. UserError if the GPU cannot be used.
std::string identity(int index);
/// Index of the calling thread's GPU, and its choice.
int current();
void choose(int index);

// Properties of the current GPU.

/// Driver's name; empty on the host.
std::string name();
/// Name and kind, in one line; empty on the host.
std::string description();
/// Address on the PCI bus ("0000:1B:00.0"), which drivers and Linux know it by, whatever subset of
/// the GPUs is visible; empty on the host.
std::string bus_address();
/// Runtime and driver with their versions; empty on the host.
std::vector<std::pair<std::string, std::string>> versions();

struct Capacity {
  std::size_t free_bytes, total_bytes;
};
std::optional<Capacity> capacity();

/// Device memory.
std::shared_ptr<void> allocate(std::size_t bytes);

// Streams and events, by their handles.

/// A stream that does not wait for the default one.
std::shared_ptr<void> make_stream();
std::shared_ptr<void> make_event();
/// The event marks the end of all work given to the stream so far.
void record(void* event, void* stream);
/// Work given to the stream from now on waits for the event.
void await(void* event, void* stream);
/// Whether the work that the event marks is unfinished. Never throws.
bool pending(void* event);
/// Copies between device and host, in the order of the stream, and waits for the copy.
void copy(void* to, const void* from, std::size_t bytes, void* stream);
/// Waits for all work on the stream.
void synchronize(void* stream);

// Work that is recorded and given to a stream as a whole (a graph).

/// From now on this thread's work for the stream, and for streams that await it, is recorded instead
/// of being run. Nothing may wait for it.
void begin_recording(void* stream);
/// The recorded work; null where the runtime cannot record something of it.
std::shared_ptr<void> end_recording(void* stream);
void replay(void* recorded, void* stream);

/// Handle of the stream of a Kokkos execution space; null on the host.
template <class Space>
void* stream_of(const Space& space) {
  if constexpr (requires { space.cuda_stream(); })
    return space.cuda_stream();
  else if constexpr (requires { space.hip_stream(); })
    return space.hip_stream();
  else
    return nullptr;
}
/// Execution space that works on a stream; on the host the default one.
template <class Space>
Space space_on(void* stream) {
  if constexpr (requires(Space space) { space.cuda_stream(); })
    return Space(static_cast<decltype(Space().cuda_stream())>(stream));
  else if constexpr (requires(Space space) { space.hip_stream(); })
    return Space(static_cast<decltype(Space().hip_stream())>(stream));
  else
    return Space();
}

}  // namespace tern::comm::gpu
