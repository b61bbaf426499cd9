#include "comm/detail/device_work.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/gpu.hpp"

namespace tern::comm::detail {
namespace {

constexpr std::chrono::milliseconds interval(500);

/// The thread that polls the device while communicators exist.
class Asker {
 public:
  void add(DeviceWork* work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(work);
    if (works_.size() > 1) return;
    stops_ = false;
    thread_ = std::thread([this, device = gpu::current()] { run(device); });
  }
  void remove(DeviceWork* work) {
    std::unique_lock lock(mutex_);
    works_.erase(std::find(works_.begin(), works_.end(), work));
    if (!works_.empty()) return;
    stops_ = true;
    lock.unlock();
    stopped_.notify_all();
    thread_.join();
  }

 private:
  void run(int device) {
    gpu::choose(device);
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, interval, [this] { return stops_; }))
      for (DeviceWork* work : works_) work->ask();
  }

  std::mutex mutex_;  // guards the members below
  std::vector<DeviceWork*> works_;
  bool stops_ = false;
  std::condition_variable stopped_;
  std::thread thread_;
};

Asker& asker() {
  static auto* const asker = new Asker;  // never destroyed: a rank may exit inside a call
  return *asker;
}

}  // namespace

DeviceWork::DeviceWork() : event_(gpu::make_event()) { asker().add(this); }

DeviceWork::~DeviceWork() { asker().remove(this); }

void DeviceWork::follow(const Operation& operation, void* stream) {
  const std::lock_guard lock(mutex_);
  gpu::record(event_.get(), stream);
  ++given_;
  followed_.begin(operation);
}

void DeviceWork::ask() {
  std::uint64_t given = 0;
  {
    const std::lock_guard lock(mutex_);
    given = given_;
  }
  if (!followed_.busy() || gpu::pending(event_.get())) return;
  const std::lock_guard lock(mutex_);
  if (given_ == given) followed_.end();  // else a newer operation may be pending
}

}  // namespace tern::comm::detail
