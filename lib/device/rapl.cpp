#include "device/rapl.hpp"

#include <fstream>
#include <optional>
#include <string>

namespace tern::device {
namespace {

std::optional<std::uint64_t> read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

Rapl::Rapl(const std::filesystem::path& root) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root, none)) {
    const std::string name = entry.path().filename().string();
    // intel-rapl:0 is a package, intel-rapl:0:0 a part of it.
    if (!name.starts_with("intel-rapl:") || name.find(':') != name.rfind(':')) continue;
    const auto energy = read_number(entry.path() / "energy_uj");
    const auto range = read_number(entry.path() / "max_energy_range_uj");
    if (energy && range) packages_.push_back({entry.path() / "energy_uj", *range, *energy});
  }
}

double Rapl::joules() {
  for (Package& p : packages_) {
    const std::uint64_t now = read_number(p.file).value_or(p.last);
    microjoules_ += now >= p.last ? now - p.last : now + p.range - p.last;
    p.last = now;
  }
  return 1e-6 * static_cast<double>(microjoules_);
}

}  // namespace tern::device
