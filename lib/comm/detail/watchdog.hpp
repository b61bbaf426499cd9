/// The thread that ends overdue waits.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tern::comm::detail {

class Watchdog {
 public:
  /// Starts watching rank `rank` of `size`. `limit` in seconds.
  Watchdog(double limit, int rank, int size);
  ~Watchdog();

 private:
  void watch();
  [[noreturn]] void end_all(const std::string& overdue) const;

  double limit_;
  int rank_, size_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;
  std::thread thread_;  // last: uses the other members
};

}  // namespace tern::comm::detail
