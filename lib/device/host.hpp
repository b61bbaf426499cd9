/// This process on its host: processor, memory and time.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace tern::device {

/// Processor as Linux describes it in /proc/cpuinfo.
struct Processor {
  std::string name;  // empty if unknown
  int cores = 0;     // of the logical processors listed, hyperthreads counted once
  double gigahertz = 0;
  int flops_per_cycle = 0;  // float32, per core, from its instruction sets; 0: unknown
  /// Float32 peak of `cores` cores; 0 if unknown. Nominal: at the clock of the moment, and with two
  /// FMA units per core, which processors for servers have.
  double gflops(int of_cores) const { return of_cores * gigahertz * flops_per_cycle; }
};
Processor processor(const std::filesystem::path& cpuinfo = "/proc/cpuinfo");

/// Memory and time of this process.
struct ProcessUsage {
  std::size_t resident_bytes = 0;
  std::size_t peak_bytes = 0;  // never falls
  double cpu_seconds = 0;      // all threads, user and system
};
ProcessUsage process_usage();

/// Processors that this process may run on, as "0-7,16-23".
std::string allowed_processors();

/// NUMA node and processors that are close to the GPU at a bus address (comm/gpu.hpp).
struct Locality {
  int numa_node = -1;  // -1: the host has one, or does not tell
  std::string processors;
};
Locality locality(const std::string& bus_address,
                  const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace tern::device
