/// Streams weights from files to the device, a few MiB at a time.
#pragma once
#include <functional>
#include <vector>

#include "base/log.hpp"
#include "parameters/parameters.hpp"
#include "transformers/safetensors.hpp"

namespace tern::weights {

/// Reads a part of a parameter, in rows and columns of the whole, to the host, row-major. Called
/// concurrently by several threads.
template <class V>
using ReadPart =
    std::function<void(const model::Parameter& parameter, const transformers::Part& part, V* to)>;

/// A slice, in this rank's arrays, of its part of a parameter.
struct Holding : Slice {
  const model::Parameter* parameter;
};

/// All holdings of `parameters`, in the order of `order`.
template <class T>
std::vector<Holding> holdings(const model::Parameters<T>& parameters,
                              const std::vector<const model::Parameter*>& order) {
  std::vector<Holding> all;
  for (const model::Parameter* p : order)
    for (const Slice& slice : parameters.slices_of(*p)) all.push_back({slice, p});
  return all;
}

struct StreamOptions {
  std::size_t threads = 1;
  std::size_t piece_bytes = std::size_t{8} << 20;
  /// Through two page-locked buffers per thread; otherwise directly into the array, which must be
  /// host-accessible.
  bool staged = !Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible;
};

struct Transfer {
  double bytes = 0, seconds = 0;
  double gigabytes() const { return bytes / 1e9; }
  double rate() const { return seconds > 0 ? gigabytes() / seconds : 0; }  // GB/s
};

/// Fills the holdings of `array` in the given order. Fences: data is on the device on return. Logs
/// progress if it takes longer than two seconds. An exception of `read` ends all threads and is
/// rethrown.
template <class V>
Transfer stream_in(const ops::Context&, const std::vector<Holding>& held, const Vector<V>& array,
                   const ReadPart<V>& read, Log& log, const StreamOptions& options = {});

}  // namespace tern::weights
