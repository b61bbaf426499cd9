/// Exchange of partial results among the ranks of a group, each of which adds up what it gets. Between
/// GPUs of one host that reach each other's memory the copy engines do it, which leaves all
/// multiprocessors to the kernels that run meanwhile; a collective of NCCL occupies some.
#pragma once
#include <cstddef>
#include <vector>

#include "base/device_stream.hpp"

namespace tern::comm {

/// What this rank sends to another one, whose own part for this rank has the same length.
struct Part {
  int rank = 0;  // the other one
  const void* data = nullptr;
  std::size_t bytes = 0;
  // Where in its slot the other rank finds this rank's part, and this rank the other's; bytes.
  std::size_t sent_to = 0, received_at = 0;
};

/// Each rank has two slots of memory, into which the others send. For each slot all ranks send, await
/// and release in turn, each as often as the others.
class PartExchange {
 public:
  static constexpr std::size_t slots = 2;
  static constexpr int most_ranks = 8;  // GPUs of a node

  virtual ~PartExchange() = default;
  /// Copies one part to each other rank's slot, in this order, after all work on `stream` so far, and
  /// once that rank has released what the slot holds. What `stream` is given later overlaps with it.
  virtual void send(std::size_t slot, const std::vector<Part>& parts,
                    const DeviceStream& stream) = 0;
  /// Work given to `stream` from now on waits until the other ranks' parts are in the slot, and this
  /// rank's have left.
  virtual void await(std::size_t slot, const DeviceStream& stream) = 0;
  /// The other ranks may overwrite the slot once `stream` comes to here.
  virtual void release(std::size_t slot, const DeviceStream& stream) = 0;
};

}  // namespace tern::comm
