#include "device/host.hpp"

#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/files.hpp"

namespace tern::device {
namespace {

/// Value of a line "key<tab>: value"; empty if it is another's.
std::string value_of(const std::string& line, const std::string& key) {
  if (!line.starts_with(key)) return {};
  const std::size_t colon = line.find(':'), end = line.find_last_not_of(" \t", colon - 1);
  if (colon == std::string::npos || end + 1 != key.size() || colon + 2 > line.size()) return {};
  return line.substr(colon + 2);
}

/// Two FMA units of the widest vectors.
int flops_per_cycle(const std::string& flags) {
  std::istringstream words(flags);
  std::set<std::string> sets;
  for (std::string word; words >> word;) sets.insert(word);
  if (sets.contains("avx512f")) return 2 * 2 * 16;
  if (sets.contains("avx2") && sets.contains("fma")) return 2 * 2 * 8;
  return sets.contains("avx") ? 2 * 8 : sets.contains("sse2") ? 2 * 4 : 0;
}

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  return set;
}

/// The largest of all calls. Linux counts resident pages per processor and adds the counts up
/// roughly, so that its own maximum can fall.
std::size_t largest_so_far(std::size_t bytes) {
  static std::atomic<std::size_t> largest = 0;
  std::size_t known = largest;
  while (known < bytes && !largest.compare_exchange_weak(known, bytes)) {
  }
  return std::max(known, bytes);
}

}  // namespace

Processor processor(const std::filesystem::path& cpuinfo) {
  Processor p;
  std::istringstream in(read_text_or_empty(cpuinfo));
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  int logical = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("processor\t")) ++logical;
    if (const auto text = value_of(line, "model name"); !text.empty()) p.name = text;
    if (const auto text = value_of(line, "cpu MHz"); !text.empty())
      p.gigahertz = std::max(p.gigahertz, 1e-3 * std::strtod(text.c_str(), nullptr));
    if (const auto text = value_of(line, "physical id"); !text.empty()) package = text;
    if (const auto text = value_of(line, "core id"); !text.empty()) cores.emplace(package, text);
    if (const auto text = value_of(line, "flags"); !text.empty() && p.flops_per_cycle == 0)
      p.flops_per_cycle = flops_per_cycle(text);
  }
  p.cores = cores.empty() ? logical : static_cast<int>(cores.size());
  return p;
}

ProcessUsage process_usage() {
  ProcessUsage usage;
  std::size_t all_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  usage.resident_bytes = resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  rusage of_process{};
  ::getrusage(RUSAGE_SELF, &of_process);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  usage.cpu_seconds = seconds(of_process.ru_utime) + seconds(of_process.ru_stime);
  usage.peak_bytes = largest_so_far(std::max(
      usage.resident_bytes, std::size_t{1024} * static_cast<std::size_t>(of_process.ru_maxrss)));
  return usage;
}

std::string allowed_processors() {
  const cpu_set_t set = allowed();
  std::vector<std::string> ranges;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    ranges.push_back(last > first ? fmt::format("{}-{}", first, last) : fmt::format("{}", first));
    first = last;
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

Locality locality(const std::string& bus_address, const std::filesystem::path& devices) {
  std::string name = bus_address;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Locality found;
  if (name.empty()) return found;
  if (int node = -1; std::ifstream(devices / name / "numa_node") >> node) found.numa_node = node;
  std::ifstream(devices / name / "local_cpulist") >> found.processors;
  return found;
}

}  // namespace tern::device
