#include "text/detail/nfc.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "base/utf8.hpp"

namespace tern::text::detail {
namespace {

struct Decomposition {
  std::uint32_t character, first, second;
  bool composes;
};
struct CombiningClass {
  std::uint32_t first, last;
  unsigned value;
};
#include "text/detail/nfc_tables.inc"

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr std::uint32_t S = 0xac00, L = 0x1100, V = 0x1161, T = 0x11a7;
constexpr std::uint32_t L_count = 19, V_count = 21, T_count = 28,
                        S_count = L_count * V_count * T_count;

unsigned combining_class(std::uint32_t c) {
  if (c < combining_classes[0].first) return 0;
  const auto* const range =
      std::lower_bound(std::begin(combining_classes), std::end(combining_classes), c,
                       [](const CombiningClass& r, std::uint32_t x) { return r.last < x; });
  return range != std::end(combining_classes) && range->first <= c ? range->value : 0;
}

void decompose(std::uint32_t c, std::vector<std::uint32_t>& out) {
  if (c - S < S_count) {
    const std::uint32_t s = c - S;
    out.push_back(L + s / (V_count * T_count));
    out.push_back(V + s % (V_count * T_count) / T_count);
    if (s % T_count != 0) out.push_back(T + s % T_count);
    return;
  }
  const auto* const found =
      std::lower_bound(std::begin(decompositions), std::end(decompositions), c,
                       [](const Decomposition& d, std::uint32_t x) { return d.character < x; });
  if (found == std::end(decompositions) || found->character != c) return out.push_back(c);
  decompose(found->first, out);
  if (found->second != 0) decompose(found->second, out);
}

/// Composite of `first` and `second`, or 0.
std::uint32_t compose(std::uint32_t first, std::uint32_t second) {
  if (first - L < L_count && second - V < V_count)
    return S + ((first - L) * V_count + second - V) * T_count;
  if (first - S < S_count && (first - S) % T_count == 0 && second > T && second < T + T_count)
    return first + second - T;
  static const auto composites = [] {
    std::unordered_map<std::uint64_t, std::uint32_t> map;
    for (const Decomposition& d : decompositions)
      if (d.composes) map[std::uint64_t{d.first} << 32 | d.second] = d.character;
    return map;
  }();
  const auto found = composites.find(std::uint64_t{first} << 32 | second);
  return found == composites.end() ? 0 : found->second;
}

/// Sorts each run of combining characters by class (stable).
void reorder(std::vector<std::uint32_t>& text) {
  for (std::size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(
        text.begin() + static_cast<std::ptrdiff_t>(i),
        text.begin() + static_cast<std::ptrdiff_t>(end),
        [](std::uint32_t a, std::uint32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

/// Composes each character with the last starter before it, unless one in between blocks it.
void compose_all(std::vector<std::uint32_t>& text) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t out = 0, starter = none;
  unsigned last_class = 0;  // class of the last character kept after the starter
  for (const std::uint32_t c : text) {
    const unsigned c_class = combining_class(c);
    const bool adjacent = starter != none && out == starter + 1;
    if (starter != none && (adjacent || last_class < c_class)) {
      if (const std::uint32_t composite = compose(text[starter], c); composite != 0) {
        text[starter] = composite;
        continue;
      }
    }
    if (c_class == 0) starter = out;
    last_class = c_class;
    text[out++] = c;
  }
  text.resize(out);
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  // The lead bytes of U+0300 and above begin at 0xcc; continuation bytes are below 0xc0.
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

std::string to_nfc(std::string_view text) {
  std::vector<std::uint32_t> characters;
  characters.reserve(text.size());
  for (const char* p = text.data(); p < text.data() + text.size();)
    decompose(next_code_point(p), characters);
  reorder(characters);
  compose_all(characters);
  std::string result;
  result.reserve(text.size());
  for (const std::uint32_t c : characters) append_utf8(c, result);
  return result;
}

}  // namespace tern::text::detail
