#include "campaign/interrupt.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tern::campaign {
namespace {

volatile std::sig_atomic_t received = 0;
void note_signal(int number) { received = number; }

constexpr std::array signals{SIGTERM, SIGUSR1, SIGINT};

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : signals) sigaction(number, &action, nullptr);
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) job_end_ = std::strtod(end, nullptr);
}

Interrupt::~Interrupt() {
  for (const int number : signals) std::signal(number, SIG_DFL);
}

bool Interrupt::requested(double margin_seconds) const {
  return received != 0 ||
         (job_end_ > 0 && job_end_ - static_cast<double>(std::time(nullptr)) < margin_seconds);
}

std::string Interrupt::reason() const {
  if (received != 0)
    return fmt::format("signal {} (SIG{})", static_cast<int>(received), sigabbrev_np(received));
  if (job_end_ > 0) return "the job's time limit is near";
  return "another rank was told to stop";
}

}  // namespace tern::campaign
