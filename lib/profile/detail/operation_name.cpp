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

/// 'Fp8RoundRows' -> 'fp8_round_rows'.
std::string words_of(std::string_view type) {
  std::string result;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const auto c = static_cast<unsigned char>(type[i]);
    if (i > 0 && std::isupper(c) && !std::isupper(static_cast<unsigned char>(type[i - 1])))
      result += '_';
    result += static_cast<char>(std::tolower(c));
  }
  return result;
}

/// Whether the text after an identifier names a member, maybe of a template.
bool is_type_of(std::string_view rest, std::string_view member) {
  if (rest.starts_with('<')) rest.remove_prefix(std::min(rest.size(), rest.find('>') + 1));
  return rest.starts_with(member);
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
    if (found.empty()) continue;
    const std::string_view rest = name.substr(at + space.size() + found.size());
    return is_type_of(rest, "::portable") ? words_of(found) : std::string(found);
  }
  if (name.starts_with("void ")) name.remove_prefix(5);
  name = name.substr(0, name.find_first_of("<("));
  name = name.substr(0, name.find(" ["));  // Kokkos: of which view
  return std::string(name.empty() ? std::string_view("unnamed") : name);
}

}  // namespace tern::profile::detail
