// Kernels, copies and sets of this process, timed by CUPTI. Its library lies outside the loader's
// path in many installations, so it is opened at run time: without it only profiles are missing.
#include <cuda_runtime.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "profile/detail/tracer.hpp"

#if defined(TERN_WITH_CUPTI)
#include <cupti.h>
#endif

namespace tern::profile::detail {

#if defined(TERN_WITH_CUPTI)
namespace {

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
using Copy = CUpti_ActivityMemcpy6;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
#else
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
#endif
using Set = CUpti_ActivityMemset4;

constexpr std::size_t buffer_bytes = std::size_t{4} << 20, buffer_alignment = 8;
constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMCPY2,
                                        CUPTI_ACTIVITY_KIND_MEMSET,
                                        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                        CUPTI_ACTIVITY_KIND_RUNTIME,
                                        CUPTI_ACTIVITY_KIND_DRIVER};

/// The functions of the library that are used. Stays open: CUPTI cannot be unloaded.
struct Library {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next;
  decltype(&cuptiActivityPushExternalCorrelationId) push;
  decltype(&cuptiActivityPopExternalCorrelationId) pop;
  decltype(&cuptiGetTimestamp) timestamp;

  /// Empty, or what is missing.
  std::string open() {
    const std::string file = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) return fmt::format("{} is not found (LD_LIBRARY_PATH)", file);
    bool found = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, name));
      found = found && function;
    };
    find(register_callbacks, "cuptiActivityRegisterCallbacks");
    find(enable, "cuptiActivityEnable");
    find(disable, "cuptiActivityDisable");
    find(flush, "cuptiActivityFlushAll");
    find(next, "cuptiActivityGetNextRecord");
    find(push, "cuptiActivityPushExternalCorrelationId");
    find(pop, "cuptiActivityPopExternalCorrelationId");
    find(timestamp, "cuptiGetTimestamp");
    return found ? "" : fmt::format("{} lacks a function", file);
  }
};

std::string demangled(const char* name) {
  if (!name) return "kernel";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

class CuptiTracer : public Tracer {
 public:
  explicit CuptiTracer(const Library& library) : cupti_(library) {}
  ~CuptiTracer() override { stop(); }

  /// Empty, or why it does not record.
  std::string start() {
    now = this;
    if (cupti_.register_callbacks(&request_buffer, &complete_buffer) != CUPTI_SUCCESS)
      return "CUPTI is used by another tool";
    for (const CUpti_ActivityKind kind : kinds)
      if (const CUptiResult result = cupti_.enable(kind); result != CUPTI_SUCCESS)
        return fmt::format("CUPTI refuses activity {}: error {}", static_cast<int>(kind),
                           static_cast<int>(result));
    cupti_.timestamp(&start_);
    active() = this;
    return "";
  }
  void begin(const char* operation, const ops::Work& work) override {
    if (depth_++ > 0) return;
    cupti_.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, recording_.calls.size());
    recording_.calls.push_back({operation, work});
  }
  void end() override {
    std::uint64_t last;
    if (--depth_ == 0) cupti_.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  }
  Recording finish() override {
    std::uint64_t end = start_;
    cupti_.timestamp(&end);
    stop();
    recording_.seconds = 1e-9 * static_cast<double>(end - start_);
    for (auto& [event, correlation] : events_) {
      const auto call = call_of_.find(correlation);
      if (call != call_of_.end()) event.call = static_cast<std::int64_t>(call->second);
      recording_.events.push_back(std::move(event));
    }
    return std::move(recording_);
  }

 private:
  static void request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
    *size = *buffer ? buffer_bytes : 0;
    *most = 0;
  }
  static void complete_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                              std::size_t valid) {
    CUpti_Activity* record = nullptr;
    while (now && valid > 0 && now->cupti_.next(buffer, valid, &record) == CUPTI_SUCCESS)
      now->add(record);
    std::free(buffer);
  }

  template <class Record>
  void add(const Record& r, std::string name) {
    if (r.start < start_) return;  // before begin
    const double seconds = 1e-9 * static_cast<double>(r.end - r.start);
    events_.push_back(
        {{std::move(name), -1, r.streamId, 1e-9 * static_cast<double>(r.start - start_), seconds},
         r.correlationId});
  }
  // Called by a thread of CUPTI's, or by flush().
  void add(const CUpti_Activity* record) {
    const std::lock_guard lock(mutex_);
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = *reinterpret_cast<const Kernel*>(record);
        return add(kernel, demangled(kernel.name));
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return add(*reinterpret_cast<const Copy*>(record), "copy");
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return add(*reinterpret_cast<const PeerCopy*>(record), "copy between devices");
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return add(*reinterpret_cast<const Set*>(record), "set");
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& external = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
        call_of_[external.correlationId] = external.externalId;
        return;
      }
      default:
        return;  // API calls, enabled because external correlations come with them
    }
  }
  void stop() {
    if (now != this) return;
    active() = nullptr;
    for (const CUpti_ActivityKind kind : kinds) cupti_.disable(kind);
    cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    now = nullptr;
  }

  static CuptiTracer* now;
  const Library& cupti_;
  std::mutex mutex_;
  Recording recording_;
  std::vector<std::pair<Event, std::uint32_t>> events_;  // and their correlations
  std::unordered_map<std::uint32_t, std::uint64_t> call_of_;
  std::uint64_t start_ = 0;
  int depth_ = 0;
};

CuptiTracer* CuptiTracer::now = nullptr;

}  // namespace

std::unique_ptr<Tracer> make_device_tracer(std::string& trouble) {
  static Library library;
  static const std::string missing = library.open();
  trouble = missing;
  if (!trouble.empty()) return nullptr;
  auto tracer = std::make_unique<CuptiTracer>(library);
  trouble = tracer->start();
  return trouble.empty() ? std::move(tracer) : nullptr;
}
#else
std::unique_ptr<Tracer> make_device_tracer(std::string& trouble) {
  trouble = "built without CUPTI";
  return nullptr;
}
#endif

}  // namespace tern::profile::detail
