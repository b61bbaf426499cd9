#include "ops/side_stream.hpp"

#include "base/error.hpp"

namespace tern::ops {

#if defined(KOKKOS_ENABLE_CUDA)
namespace {

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw InternalError(fmt::format("{} failed: {}", what, cudaGetErrorString(code)));
}

cudaEvent_t event_in(const std::shared_ptr<void>& event) {
  return static_cast<cudaEvent_t>(event.get());
}

}  // namespace

SideStream::SideStream() {
  cudaStream_t stream = nullptr;
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest),
        "cudaStreamCreateWithPriority");
  stream_ = {stream, [](void* s) { cudaStreamDestroy(static_cast<cudaStream_t>(s)); }};
  context_.space = Device(stream);
}

Mark::Mark() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  event_ = {event, [](void* e) { cudaEventDestroy(static_cast<cudaEvent_t>(e)); }};
}

void Mark::set(const Context& context) {
  check(cudaEventRecord(event_in(event_), context.space.cuda_stream()), "cudaEventRecord");
}

void Mark::await(const Context& context) const {
  check(cudaStreamWaitEvent(context.space.cuda_stream(), event_in(event_), 0),
        "cudaStreamWaitEvent");
}
#else
SideStream::SideStream() = default;
Mark::Mark() = default;
void Mark::set(const Context&) {}
void Mark::await(const Context&) const {}
#endif

}  // namespace tern::ops
