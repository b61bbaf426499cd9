#include "memory/host_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;
using Bytes = std::uint64_t;

std::optional<Bytes> number_in(std::string_view text) {
  Bytes value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    return std::nullopt;  // "max": no limit
  return value;
}

std::optional<Bytes> number_at(const fs::path& file) { return number_in(read_text_or_empty(file)); }

/// Sum of the values of lines "NAME value" or "NAME: value kB"; nothing without such a line.
template <class... Names>
std::optional<Bytes> sum_of(const std::string& text, Names... names) {
  std::istringstream lines(text);
  std::optional<Bytes> sum;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes value = 0;
    if (words >> name >> value && ((name == names) || ...)) sum = sum.value_or(0) + value;
  }
  return sum;
}

/// The control group of this process that limits its memory, and the mount it belongs to.
struct Group {
  fs::path mount, folder;
};

bool lists(const std::string& names, std::string_view name) {
  std::istringstream all(names);
  for (std::string one; std::getline(all, one, ',');)
    if (one == name) return true;
  return false;
}

/// Path of this process's group in /proc/self/cgroup, "ID:CONTROLLERS:PATH"; version 2 lists no
/// controllers.
std::optional<std::string> group_path(const fs::path& root, bool version2) {
  std::istringstream lines(read_text_or_empty(root / "proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version2 ? controllers.empty() : lists(controllers, "memory"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// A container may see only the part of the hierarchy that is mounted: `shown`.
std::string below(const std::string& path, const std::string& shown) {
  if (path.find("..") != path.npos) return "";
  if (shown == "/") return path;
  const bool within =
      path.starts_with(shown) && (path.size() == shown.size() || path[shown.size()] == '/');
  return within ? path.substr(shown.size()) : "";
}

/// From /proc/self/mountinfo: "ID PARENT DEVICE SHOWN MOUNT ... - TYPE SOURCE OPTIONS".
std::optional<Group> group_of(const fs::path& root, bool version2) {
  const auto path = group_path(root, version2);
  if (!path) return std::nullopt;
  std::istringstream lines(read_text_or_empty(root / "proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string word, shown, mount, type, source, options;
    std::istringstream(line) >> word >> word >> word >> shown >> mount;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (version2 ? type != "cgroup2" : type != "cgroup" || !lists(options, "memory")) continue;
    Group group;
    group.mount = (root / fs::path(mount).relative_path()).lexically_normal();
    group.folder = (group.mount / fs::path(below(*path, shown)).relative_path()).lexically_normal();
    if (!group.folder.has_filename()) group.folder = group.folder.parent_path();
    return group;
  }
  return std::nullopt;
}

/// Lowers `memory` to what the limit in `file` leaves.
void apply(const fs::path& file, Bytes in_use, HostMemory& memory) {
  const auto limit = number_at(file);
  if (!limit) return;
  const Bytes left = *limit > in_use ? *limit - in_use : 0;
  memory.total = std::min<Bytes>(memory.total, *limit);
  if (left >= memory.available) return;
  memory.available = left;
  memory.limit = file;
}

/// Memory in use by a group and those below it, without pages of files, which the kernel drops
/// before it refuses memory.
Bytes in_use(const fs::path& current, const std::optional<Bytes>& reclaimable) {
  const Bytes all = number_at(current).value_or(0);
  return all - std::min(all, reclaimable.value_or(0));
}

void apply_version1(const fs::path& folder, HostMemory& memory) {
  const std::string stat = read_text_or_empty(folder / "memory.stat");
  const auto files = sum_of(stat, "total_inactive_file", "total_active_file");
  apply(folder / "memory.limit_in_bytes", in_use(folder / "memory.usage_in_bytes", files), memory);
}

void apply_version2(const fs::path& folder, HostMemory& memory) {
  const std::string stat = read_text_or_empty(folder / "memory.stat");
  const auto files = sum_of(stat, "inactive_file", "active_file", "slab_reclaimable");
  for (const char* limit : {"memory.max", "memory.high"})
    apply(folder / limit, in_use(folder / "memory.current", files), memory);
}

}  // namespace

HostMemory host_memory(const fs::path& root) {
  const std::string meminfo = read_text_or_empty(root / "proc/meminfo");
  const auto page = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  const auto bytes = [&](const char* name, int pages) {
    const auto kibibytes = sum_of(meminfo, name);
    return kibibytes ? *kibibytes * 1024 : page * static_cast<Bytes>(sysconf(pages));
  };
  HostMemory memory{
      bytes("MemAvailable:", _SC_AVPHYS_PAGES), bytes("MemTotal:", _SC_PHYS_PAGES), {}};
  for (const bool version2 : {false, true}) {
    const auto group = group_of(root, version2);
    if (!group) continue;
    for (fs::path folder = group->folder;; folder = folder.parent_path()) {
      version2 ? apply_version2(folder, memory) : apply_version1(folder, memory);
      if (folder == group->mount || !folder.has_relative_path()) break;
    }
  }
  return memory;
}

}  // namespace tern
