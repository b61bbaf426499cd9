#include "profile/detail/host_tracer.hpp"

#include <Kokkos_Core.hpp>
#include <chrono>
#include <thread>

namespace tern::profile::detail {
namespace {

namespace tools = Kokkos::Tools::Experimental;
using Clock = std::chrono::steady_clock;

class HostTracer : public Tracer {
 public:
  HostTracer() : earlier_(tools::get_callbacks()) {
    now = this;
    tools::EventSet ours{};
    ours.begin_parallel_for = ours.begin_parallel_reduce = ours.begin_parallel_scan = &begin_kernel;
    ours.end_parallel_for = ours.end_parallel_reduce = ours.end_parallel_scan = &end_kernel;
    tools::set_callbacks(ours);
    active() = this;
  }
  ~HostTracer() override { stop(); }

  void begin(const char* operation, const ops::Work& work) override {
    if (depth_++ > 0) return;
    recording_.events.push_back({operation, std::int64_t(recording_.calls.size()), 0, since(), 0});
    recording_.calls.push_back({operation, work});
  }
  void end() override {
    if (--depth_ > 0) return;
    Event& event = recording_.events.back();
    event.seconds = since() - event.begin;
  }
  Recording finish() override {
    stop();
    recording_.seconds = since();
    return std::move(recording_);
  }

 private:
  // Kokkos calls back from any thread; kernels of others, such as a writer's, are not the step's.
  static void begin_kernel(const char* name, std::uint32_t, std::uint64_t*) {
    if (now && now->thread_ == std::this_thread::get_id()) now->begin(name, {});
  }
  static void end_kernel(std::uint64_t) {
    if (now && now->thread_ == std::this_thread::get_id()) now->end();
  }
  double since() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void stop() {
    if (now != this) return;
    tools::set_callbacks(earlier_);
    active() = nullptr;
    now = nullptr;
  }

  static HostTracer* now;
  tools::EventSet earlier_;
  std::thread::id thread_ = std::this_thread::get_id();
  Clock::time_point start_ = Clock::now();
  Recording recording_;
  int depth_ = 0;  // of operations, kernels inside of them included
};

HostTracer* HostTracer::now = nullptr;

}  // namespace

std::unique_ptr<Tracer> make_host_tracer() { return std::make_unique<HostTracer>(); }

}  // namespace tern::profile::detail
