#include "comm/gpu.hpp"

#include <cstring>

#include "base/error.hpp"
#if defined(TERN_WITH_CUDA)
#include <cuda_runtime_api.h>
// The two runtimes have the same functions under names that differ in their first letters.
#define TERN_RUNTIME(name) cuda##name
#elif defined(TERN_WITH_HIP)
#include <hip/hip_runtime_api.h>
#define TERN_RUNTIME(name) hip##name
#endif

namespace tern::comm::gpu {

#if defined(TERN_RUNTIME)
namespace {

using Error = TERN_RUNTIME(Error_t);
using Stream = TERN_RUNTIME(Stream_t);
using Event = TERN_RUNTIME(Event_t);
constexpr Error success = TERN_RUNTIME(Success);

const char* text(Error code) { return TERN_RUNTIME(GetErrorString)(code); }

void check(Error code, const char* what) {
  if (code != success) throw InternalError(fmt::format("{} failed: {}", what, text(code)));
}

// What differs by more than its name.
#if defined(TERN_WITH_CUDA)
using Properties = cudaDeviceProp;
constexpr const char *runtime_name = "CUDA", *monitor = "nvidia-smi";
/// Slices of one GPU have the same address on the bus.
std::string identity_of(const Properties& properties, int) {
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}
std::string kind_of(const Properties& properties) {
  return fmt::format("compute capability {}.{}, {} multiprocessors", properties.major,
                     properties.minor, properties.multiProcessorCount);
}
std::string version_text(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }
#else
using Properties = hipDeviceProp_t;
constexpr const char *runtime_name = "HIP", *monitor = "rocm-smi";
std::string identity_of(const Properties&, int index) {
  char address[32] = {};  // all of it: identities have the same length
  check(hipDeviceGetPCIBusId(address, sizeof address, index), "hipDeviceGetPCIBusId");
  return {address, sizeof address};
}
std::string kind_of(const Properties& properties) {
  return fmt::format("{}, {} compute units", properties.gcnArchName,
                     properties.multiProcessorCount);
}
std::string version_text(int v) { return fmt::format("{}.{}", v / 10000000, v / 100000 % 100); }
#endif

std::optional<Properties> properties() {
  int index = 0;
  Properties found{};
  if (TERN_RUNTIME(GetDevice)(&index) != success ||
      TERN_RUNTIME(GetDeviceProperties)(&found, index) != success)
    return std::nullopt;
  return found;
}

}  // namespace

int count(std::string& why) {
  int visible = 0;
  const Error code = TERN_RUNTIME(GetDeviceCount)(&visible);
  why = text(code);
  return code == success ? visible : 0;
}

std::string identity(int index) {
  Properties found{};
  if (const Error failed = TERN_RUNTIME(GetDeviceProperties)(&found, index); failed != success)
    user_error("GPU {} cannot be used: {}; check its state with {}", index, text(failed), monitor);
  return identity_of(found, index);
}

int current() {
  int index = 0;
  check(TERN_RUNTIME(GetDevice)(&index), "GetDevice");
  return index;
}
void choose(int index) { check(TERN_RUNTIME(SetDevice)(index), "SetDevice"); }

std::string name() {
  const auto found = properties();
  return found ? found->name : "";
}

std::string description() {
  const auto found = properties();
  return found ? fmt::format("GPU {} {} ({})", current(), found->name, kind_of(*found)) : "";
}

std::string bus_address() {
  int index = 0;
  char address[32] = {};
  if (TERN_RUNTIME(GetDevice)(&index) == success &&
      TERN_RUNTIME(DeviceGetPCIBusId)(address, sizeof address, index) == success)
    return address;
  return {};
}

std::vector<std::pair<std::string, std::string>> versions() {
  int runtime = 0, driver = 0;
  static_cast<void>(TERN_RUNTIME(RuntimeGetVersion)(&runtime));
  static_cast<void>(TERN_RUNTIME(DriverGetVersion)(&driver));
  return {{fmt::format("{} runtime", runtime_name), version_text(runtime)},
          {fmt::format("{} of the driver", runtime_name), version_text(driver)}};
}

std::optional<Capacity> capacity() {
  Capacity found{};
  static_cast<void>(TERN_RUNTIME(MemGetInfo)(&found.free_bytes, &found.total_bytes));
  return found;
}

std::shared_ptr<void> allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(TERN_RUNTIME(Malloc)(&memory, bytes), "Malloc");
  return {memory, [](void* owned) { static_cast<void>(TERN_RUNTIME(Free)(owned)); }};
}

std::shared_ptr<void> make_stream() {
  Stream stream = nullptr;
  check(TERN_RUNTIME(StreamCreateWithFlags)(&stream, TERN_RUNTIME(StreamNonBlocking)),
        "StreamCreateWithFlags");
  return {stream, [](void* owned) {
            static_cast<void>(TERN_RUNTIME(StreamDestroy)(static_cast<Stream>(owned)));
          }};
}

std::shared_ptr<void> make_event() {
  Event event = nullptr;
  check(TERN_RUNTIME(EventCreateWithFlags)(&event, TERN_RUNTIME(EventDisableTiming)),
        "EventCreateWithFlags");
  return {event, [](void* owned) {
            static_cast<void>(TERN_RUNTIME(EventDestroy)(static_cast<Event>(owned)));
          }};
}

void record(void* event, void* stream) {
  check(TERN_RUNTIME(EventRecord)(static_cast<Event>(event), static_cast<Stream>(stream)),
        "EventRecord");
}

void await(void* event, void* stream) {
  check(TERN_RUNTIME(StreamWaitEvent)(static_cast<Stream>(stream), static_cast<Event>(event), 0),
        "StreamWaitEvent");
}

bool pending(void* event) {
  return TERN_RUNTIME(EventQuery)(static_cast<Event>(event)) == TERN_RUNTIME(ErrorNotReady);
}

void copy(void* to, const void* from, std::size_t bytes, void* stream) {
  check(TERN_RUNTIME(MemcpyAsync)(to, from, bytes, TERN_RUNTIME(MemcpyDefault),
                                  static_cast<Stream>(stream)),
        "MemcpyAsync");
  synchronize(stream);
}

void synchronize(void* stream) {
  check(TERN_RUNTIME(StreamSynchronize)(static_cast<Stream>(stream)), "StreamSynchronize");
}

void begin_recording(void* stream) {
  check(TERN_RUNTIME(StreamBeginCapture)(static_cast<Stream>(stream),
                                         TERN_RUNTIME(StreamCaptureModeRelaxed)),
        "StreamBeginCapture");
}

std::shared_ptr<void> end_recording(void* stream) {
  TERN_RUNTIME(Graph_t) graph = nullptr;
  TERN_RUNTIME(GraphExec_t) executable = nullptr;
  Error error = TERN_RUNTIME(StreamEndCapture)(static_cast<Stream>(stream), &graph);
  if (error == success) error = TERN_RUNTIME(GraphInstantiateWithFlags)(&executable, graph, 0);
  if (graph) TERN_RUNTIME(GraphDestroy)(graph);
  if (error != success) {
    static_cast<void>(TERN_RUNTIME(GetLastError)());
    return nullptr;
  }
  return {executable, [](void* p) {
            static_cast<void>(TERN_RUNTIME(GraphExecDestroy)(TERN_RUNTIME(GraphExec_t)(p)));
          }};
}

void replay(void* recorded, void* stream) {
  check(TERN_RUNTIME(GraphLaunch)(static_cast<TERN_RUNTIME(GraphExec_t)>(recorded),
                                  static_cast<Stream>(stream)),
        "GraphLaunch");
}

#else
int count(std::string&) { return 0; }
std::string identity(int) { return {}; }
int current() { return 0; }
void choose(int) {}
std::string name() { return {}; }
std::string description() { return {}; }
std::string bus_address() { return {}; }
std::vector<std::pair<std::string, std::string>> versions() { return {}; }
std::optional<Capacity> capacity() { return std::nullopt; }
std::shared_ptr<void> allocate(std::size_t bytes) {
  return {::operator new(bytes), [](void* owned) { ::operator delete(owned); }};
}
std::shared_ptr<void> make_stream() { return nullptr; }
std::shared_ptr<void> make_event() { return nullptr; }
void record(void*, void*) {}
void await(void*, void*) {}
bool pending(void*) { return false; }
void copy(void* to, const void* from, std::size_t bytes, void*) { std::memcpy(to, from, bytes); }
void synchronize(void*) {}
void begin_recording(void*) {}
std::shared_ptr<void> end_recording(void*) { return nullptr; }
void replay(void*, void*) {}
#endif

}  // namespace tern::comm::gpu
