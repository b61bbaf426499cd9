/// Values in the memory of the device, which collectives send.
#pragma once
#include <Kokkos_Core.hpp>
#include <vector>

#include "base/device_stream.hpp"

namespace tern::test {

/// The device's default stream, on which DeviceData is copied.
class DefaultStream : public DeviceStream {
 public:
  void* handle() const override { return nullptr; }
  void fence(const char* where) const override { Kokkos::fence(where); }
};

template <class T>
class DeviceData {
 public:
  explicit DeviceData(const std::vector<T>& values) : values_("values", values.size()) {
    Kokkos::deep_copy(values_, host(const_cast<T*>(values.data()), values.size()));
    Kokkos::fence();
  }
  T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  std::size_t bytes() const { return size() * sizeof(T); }
  /// Of what has been sent, when it has come.
  std::vector<T> read() const {
    std::vector<T> values(size());
    Kokkos::fence();
    Kokkos::deep_copy(host(values.data(), values.size()), values_);
    return values;
  }

 private:
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  static Host host(T* data, std::size_t n) { return Host(data, n); }
  Kokkos::View<T*> values_;
};

}  // namespace tern::test
