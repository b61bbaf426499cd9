/// A rank that does not come must not keep the others for ever: a wait for other ranks has a limit.
#pragma once

namespace tern::comm {

/// A rank that waits longer than this for others says what for, among which ranks and since when on
/// stderr, and ends all ranks with exit code 70. 0: no limit. Called by each rank after Session
/// began, before groups are made; not collective. One rank alone waits for nobody.
void limit_waits(double minutes);

/// While one lives, the limit is `long_wait_factor` times as long: where others may rightly work
/// that long alone, as on files.
class LongWait {
 public:
  LongWait();
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
};
constexpr int long_wait_factor = 24;

}  // namespace tern::comm
