#include "memory/arena.hpp"

#include <cstdint>

#include "base/error.hpp"
#include "comm/gpu.hpp"
#include "memory/host_memory.hpp"

namespace tern {

const char* term_name(Term term) {
  switch (term) {
    case Term::parameters:
      return "parameters";
    case Term::gradients:
      return "gradients";
    case Term::optimizer:
      return "optimizer states";
    case Term::activations:
      return "activations";
    case Term::workspace:
      return "workspace";
    case Term::data:
      return "data";
    case Term::cache:
      return "key-value cache";
  }
  return "?";
}

Arena::Arena(std::size_t bytes) : capacity_(bytes) {
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  try {
    block_ = Kokkos::kokkos_malloc<DeviceMemory>("arena", bytes + alignment);
  } catch (const std::exception&) {
    user_error(
        "out of device memory: the plan needs {:.2f} GiB, and {:.2f} GiB are free; lower &batch "
        "per_rank, or set &precision recompute = 'block'",
        bytes / gib, device_capacity().free_bytes / gib);
  }
  // Kokkos' header in front of an allocation leaves it aligned to only 128 bytes.
  const auto address = reinterpret_cast<std::uintptr_t>(block_);
  first_ = reinterpret_cast<char*>((address + alignment - 1) / alignment * alignment);
  Kokkos::View<char*, DeviceMemory, Unmanaged> all(first_, bytes);
  Kokkos::deep_copy(all, 0);
}

Arena::~Arena() {
  if (block_) Kokkos::kokkos_free<DeviceMemory>(block_);
}

std::size_t Arena::bytes(Term term) const {
  std::size_t sum = 0;
  for (const Request& r : requests_)
    if (r.term == term) sum += aligned(r.bytes);
  return sum;
}

void* Arena::take(std::string name, Term term, std::size_t bytes) {
  const std::size_t offset = used_;
  used_ += aligned(bytes);
  if (block_)
    TERN_REQUIRE(used_ <= capacity_, "request '{}' of {} bytes exceeds the plan of {}", name, bytes,
                 capacity_);
  requests_.push_back({std::move(name), term, bytes, offset});
  return block_ ? first_ + offset : nullptr;
}

DeviceCapacity device_capacity() {
  if (const auto found = comm::gpu::capacity()) return {found->free_bytes, found->total_bytes};
  const HostMemory host = host_memory();
  return {host.available, host.total};
}

}  // namespace tern
