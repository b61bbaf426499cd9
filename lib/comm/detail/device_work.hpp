/// Tracks NCCL operations until the device has finished them.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

/// Tracks the newest operation of one communicator with an event recorded after it, which a polling
/// thread, shared by all communicators, queries. If an older operation stalls, so does the newest.
/// The enqueuing thread queries nothing: once the device's queue is full, every call blocks,
/// perhaps the polling thread's as well, and the last operation stays tracked.
class DeviceWork {
 public:
  DeviceWork();
  ~DeviceWork();
  /// `operation` has been enqueued on `stream`.
  void follow(const Operation& operation, void* stream);
  /// Stops tracking a finished operation. Called by the polling thread.
  void ask();

 private:
  std::shared_ptr<void> event_;
  std::mutex mutex_;         // guards the members below
  std::uint64_t given_ = 0;  // operations enqueued
  Followed followed_;
};

}  // namespace tern::comm::detail
