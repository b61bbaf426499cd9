/// Progress of a replica: a row of the log every few seconds.
#pragma once
#include "base/log.hpp"
#include "base/timer.hpp"
#include "generate/engine.hpp"

namespace tern::answer::detail {

class AnswerProgress {
 public:
  AnswerProgress(Log& log, int replica, int replicas, std::size_t requests)
      : log_(log), replica_(replica), replicas_(replicas), requests_(requests) {}

  /// Logs a row if the last one is old enough; rates are since that one.
  void at(std::size_t done, const generate::Stats& stats);
  double seconds() const { return timer_.seconds(); }

 private:
  void begin_table();
  std::string left(std::size_t done) const;

  static constexpr double seconds_between_rows = 10;
  Log& log_;
  int replica_, replicas_;
  std::size_t requests_, last_done_ = 0;
  bool begun_ = false;
  generate::Stats last_;
  Timer timer_, since_last_;
};

}  // namespace tern::answer::detail
