/// Time limit on waits for other ranks, so that a missing rank does not hang the others.
#pragma once

namespace tern::comm {

/// A rank that waits longer for others reports on stderr the operation, its ranks and the start of
/// the wait, and ends all ranks with exit code 70. 0: no limit. Each rank calls it after Session is
/// created and before groups are; not collective. No effect on a single rank.
void limit_waits(double minutes);

/// Scope in which the limit is `long_wait_factor` times longer: other ranks may take that long, for
/// instance with files.
class LongWait {
 public:
  LongWait();
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
};
constexpr int long_wait_factor = 24;

/// Seconds that this rank has spent in host calls that involve other ranks: waits for them, and
/// transfer. Device collectives of CUDA builds are not among them. Local; of the thread that calls
/// MPI.
double seconds_with_others();

}  // namespace tern::comm
