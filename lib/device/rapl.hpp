/// Energy of the host's processors (RAPL), from Linux powercap.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tern::device {

class Rapl {
 public:
  /// Packages intel-rapl:N below `root`, AMD's as well; they include their subdomains.
  explicit Rapl(const std::filesystem::path& root = "/sys/class/powercap");
  /// False if there are none or they are not readable.
  bool available() const { return !packages_.empty(); }
  /// Since construction. The counters wrap after about an hour at full load: call it more often.
  double joules();

 private:
  // energy_uj counts microjoules and wraps to zero after max_energy_range_uj.
  struct Package {
    std::filesystem::path file;
    std::uint64_t range, last;
  };
  std::vector<Package> packages_;
  std::uint64_t microjoules_ = 0;
};

}  // namespace tern::device
