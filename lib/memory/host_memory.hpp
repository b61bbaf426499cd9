/// Memory of the host that this process may still take.
#pragma once
#include <cstddef>
#include <filesystem>

namespace tern {

struct HostMemory {
  std::size_t available = 0;  // bytes; pages of files that the kernel can drop count as available
  std::size_t total = 0;      // bytes of the host, or the lowest limit of its control groups
  std::filesystem::path
      limit;  // the control group's file that bounds `available`; empty: none does
};

/// MemAvailable of /proc/meminfo, or less if a control group of this process or one of its ancestors
/// allows less: memory.max and memory.high (version 2) or memory.limit_in_bytes (version 1), minus
/// the memory in use, plus the part of it that holds pages of files. Batch systems and containers
/// set such limits. `root`: the folder that holds proc and sys.
HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace tern
