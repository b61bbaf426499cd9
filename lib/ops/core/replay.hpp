/// Work that repeats with the same arguments, recorded once and then started as a whole (CUDA graphs):
/// the device then goes from kernel to kernel faster.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>

#include "ops/core/context.hpp"

namespace tern::ops {

class Replay {
 public:
  using Key = std::array<std::size_t, 3>;

  /// Runs `work`, all of which it gives to the context's stream, and which does the same for equal
  /// keys: the same operations with the same arguments. It may not wait for the device. Recorded
  /// once it has run often enough to repay that, unless a profile or a tool is told of operations;
  /// on the host never.
  void run(const Context& context, const Key& key, const std::function<void()>& work);
  /// Drops what is recorded, since arguments change.
  void forget() { known_.clear(); }
  std::size_t recorded() const;  // how many are kept

  static constexpr std::size_t runs_before = 16;  // recording takes the time that about 30 save
  static constexpr std::size_t most = 32;         // recordings, each a few MB of device memory

 private:
  struct Known {
    std::size_t runs = 0, last = 0;  // last: by number of calls
    bool refused = false;            // the runtime cannot record it
    std::shared_ptr<void> recorded;
  };
  void record(const Context& context, Known& known, const std::function<void()>& work);
  void make_room();

  std::map<Key, Known> known_;
  std::size_t calls_ = 0;
};

}  // namespace tern::ops
