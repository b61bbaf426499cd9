/// Exchange of partial results between the two ranks of a group, each of which adds up both. Between
/// GPUs of one host that reach each other's memory the copy engines do it, which leaves all
/// multiprocessors to the kernels that run meanwhile; a collective of NCCL occupies some.
#pragma once
#include <cstddef>

#include "base/device_stream.hpp"

namespace tern::comm {

/// Rounds follow each other. In each, both ranks send the same parts, each at most once: bytes of a
/// buffer that come to lie at the same place of the other rank's `received`.
class PartExchange {
 public:
  static constexpr std::size_t parts = 2;  // most of a round

  virtual ~PartExchange() = default;
  /// Copies data[first, first + bytes) to the other rank, after all work on `stream`, which should
  /// be a stream of its own: it waits until the other rank has ended the round before.
  virtual void send(std::size_t part, const void* data, std::size_t first, std::size_t bytes,
                    const DeviceStream& stream) = 0;
  /// Work given to `stream` from now on waits until the part has come, and the own one has left.
  virtual void await(std::size_t part, const DeviceStream& stream) = 0;
  /// The other rank may overwrite what was received once `stream` comes to here.
  virtual void end_round(const DeviceStream& stream) = 0;
};

}  // namespace tern::comm
