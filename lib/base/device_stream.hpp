/// Ordered queue of device work, as seen by those that add to it without knowing the device.
#pragma once

namespace tern {

class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  /// The runtime's stream (cudaStream_t, hipStream_t); null for the default stream and on the host.
  virtual void* handle() const = 0;
  /// Waits for all work on the stream; `where` names the wait to profilers.
  virtual void fence(const char* where) const = 0;
};

}  // namespace tern
