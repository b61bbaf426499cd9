#include "report/detail/energy.hpp"

#include <cstdint>
#include <fstream>
#include <optional>
#include <vector>

namespace tern::report::detail {
namespace {

std::optional<std::uint64_t> read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// energy_uj counts microjoules and wraps to zero after max_energy_range_uj.
class Rapl : public EnergyCounter {
 public:
  struct Package {
    std::filesystem::path file;
    std::uint64_t range, last;
  };
  explicit Rapl(std::vector<Package> packages) : packages_(std::move(packages)) {}

  double joules() override {
    for (Package& p : packages_) {
      const std::uint64_t now = read_number(p.file).value_or(p.last);
      microjoules_ += now >= p.last ? now - p.last : now + p.range - p.last;
      p.last = now;
    }
    return 1e-6 * double(microjoules_);
  }

 private:
  std::vector<Package> packages_;
  std::uint64_t microjoules_ = 0;
};

}  // namespace

std::unique_ptr<EnergyCounter> rapl_energy(const std::filesystem::path& root) {
  std::vector<Rapl::Package> packages;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root, none)) {
    const std::string name = entry.path().filename().string();
    // intel-rapl:0 is a package (AMD's too), intel-rapl:0:0 a part of it.
    if (!name.starts_with("intel-rapl:") || name.find(':') != name.rfind(':')) continue;
    const auto energy = read_number(entry.path() / "energy_uj");
    const auto range = read_number(entry.path() / "max_energy_range_uj");
    if (energy && range) packages.push_back({entry.path() / "energy_uj", *range, *energy});
  }
  if (packages.empty()) return nullptr;
  return std::make_unique<Rapl>(std::move(packages));
}

}  // namespace tern::report::detail
