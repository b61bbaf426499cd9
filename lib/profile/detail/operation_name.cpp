#include "profile/detail/operation_name.hpp"

#include <algorithm>
#include <cctype>

namespace tern::profile::detail {
namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The identifier at the start of the text.
std::string_view identifier(std::string_view text) {
  return text.substr(0, static_cast<std::size_t>(
                            std::find_if_not(text.begin(), text.end(), in_name) - text.begin()));
}

std::string without(std::string_view text, std::string_view part) {
  std::string result(text);
  for (std::size_t at; (at = result.find(part)) != std::string::npos;)
    result.erase(at, part.size());
  return result;
}

}  // namespace

std::string operation_name(std::string_view name) {
  const std::string named = without(name, "(anonymous namespace)::");
  name = named;
  // Kokkos' launcher names what it runs: ParallelFor<functor, ...>.
  for (const std::string_view pattern : {"ParallelFor<", "ParallelReduce<", "ParallelScan<"})
    if (const std::size_t at = name.find(pattern); at != std::string_view::npos)
      name.remove_prefix(at + pattern.size());
  for (const std::string_view space : {"tern::ops::cuda::detail::", "tern::ops::cuda::",
                                       "tern::ops::portable::detail::", "tern::ops::", "tern::"}) {
    const std::size_t at = name.find(space);
    if (at == std::string_view::npos) continue;
    const std::string_view found = identifier(name.substr(at + space.size()));
    if (!found.empty()) return std::string(found);
  }
  if (name.starts_with("void ")) name.remove_prefix(5);
  name = name.substr(0, name.find_first_of("<("));
  name = name.substr(0, name.find(" ["));  // Kokkos: of which view
  return std::string(name.empty() ? std::string_view("unnamed") : name);
}

}  // namespace tern::profile::detail
