/// Exchange of partial results between the two ranks of a group, each of which adds up both. Between
/// GPUs of one host that reach each other's memory the copy engines do it, which leaves all
/// multiprocessors to the kernels that run meanwhile; a collective of NCCL occupies some.
#pragma once
#include <cstddef>

#include "base/device_stream.hpp"

namespace tern::comm {

/// Where in its slot the other rank finds this rank's part, and this rank the other's; bytes.
struct PartPlaces {
  std::size_t sent = 0, received = 0;
};

/// Each rank has two slots of memory, into which the other one sends. For each slot both ranks send,
/// await and release in turn, each as often as the other.
class PartExchange {
 public:
  static constexpr std::size_t slots = 2;

  virtual ~PartExchange() = default;
  /// Copies `bytes` of `data` to the other rank's slot, after all work on `stream` so far, and once
  /// the other rank has released what it holds. What `stream` is given later overlaps with it.
  virtual void send(std::size_t slot, const void* data, std::size_t bytes,
                    const DeviceStream& stream, const PartPlaces& places = {}) = 0;
  /// Work given to `stream` from now on waits until the other rank's part is in the slot, and this
  /// rank's has left.
  virtual void await(std::size_t slot, const DeviceStream& stream) = 0;
  /// The other rank may overwrite the slot once `stream` comes to here.
  virtual void release(std::size_t slot, const DeviceStream& stream) = 0;
};

}  // namespace tern::comm
