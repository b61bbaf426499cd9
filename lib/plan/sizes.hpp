/// Memory sizes as text.
#pragma once
#include <fmt/format.h>

#include <string>

namespace tern::plan {

/// A unit of 1024^n bytes.
struct SizeUnit {
  const char* name;
  double bytes;
  double of(std::size_t size) const { return static_cast<double>(size) / bytes; }
};

/// GiB, MiB or KiB: the largest not above `size`.
inline SizeUnit unit_of(std::size_t size) {
  constexpr double kib = 1024;
  if (size >= std::size_t{1} << 30) return {"GiB", kib * kib * kib};
  if (size >= std::size_t{1} << 20) return {"MiB", kib * kib};
  return {"KiB", kib};
}

/// E.g. 31.250 GiB, 5.6 MiB, 12.0 KiB.
inline std::string size_text(std::size_t size) {
  const SizeUnit unit = unit_of(size);
  return fmt::format("{:.{}f} {}", unit.of(size), unit.name[0] == 'G' ? 3 : 1, unit.name);
}

}  // namespace tern::plan
