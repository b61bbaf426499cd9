#include "text/detail/property.hpp"

#include <array>
#include <cctype>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/detail/regex.hpp"

namespace tern::text::detail {
namespace {

struct Addition {
  std::string_view property;
  std::uint32_t first, last;
};

#include "text/detail/property_additions.inc"

/// A general category: its abbreviation, its name, and the categories that it consists of.
struct Category {
  std::string_view name, long_name;
  std::string_view parts = {};  // two letters each; empty: itself
};

constexpr std::array categories{Category{"L", "letter", "LuLlLtLmLo"},
                                Category{"LC", "casedletter", "LuLlLt"},
                                Category{"M", "mark", "MnMcMe"},
                                Category{"N", "number", "NdNlNo"},
                                Category{"P", "punctuation", "PcPdPsPePiPfPo"},
                                Category{"S", "symbol", "SmScSkSo"},
                                Category{"Z", "separator", "ZsZlZp"},
                                Category{"Lu", "uppercaseletter"},
                                Category{"Ll", "lowercaseletter"},
                                Category{"Lt", "titlecaseletter"},
                                Category{"Lm", "modifierletter"},
                                Category{"Lo", "otherletter"},
                                Category{"Mn", "nonspacingmark"},
                                Category{"Mc", "spacingmark"},
                                Category{"Me", "enclosingmark"},
                                Category{"Nd", "decimalnumber"},
                                Category{"Nl", "letternumber"},
                                Category{"No", "othernumber"},
                                Category{"Pc", "connectorpunctuation"},
                                Category{"Pd", "dashpunctuation"},
                                Category{"Ps", "openpunctuation"},
                                Category{"Pe", "closepunctuation"},
                                Category{"Pi", "initialpunctuation"},
                                Category{"Pf", "finalpunctuation"},
                                Category{"Po", "otherpunctuation"},
                                Category{"Sm", "mathsymbol"},
                                Category{"Sc", "currencysymbol"},
                                Category{"Sk", "modifiersymbol"},
                                Category{"So", "othersymbol"},
                                Category{"Zs", "spaceseparator"},
                                Category{"Zl", "lineseparator"},
                                Category{"Zp", "paragraphseparator"},
                                Category{"Cc", "control"},
                                Category{"Cf", "format"},
                                Category{"Co", "privateuse"},
                                Category{"Cs", "surrogate"}};

/// Of the scripts with additions.
constexpr std::pair<std::string_view, std::string_view> abbreviations[] = {
    {"arab", "arabic"},      {"bali", "balinese"},    {"zyyy", "common"},
    {"cyrl", "cyrillic"},    {"deva", "devanagari"},  {"egyp", "egyptianhieroglyphs"},
    {"gara", "garay"},       {"gukh", "gurungkhema"}, {"hani", "han"},
    {"hira", "hiragana"},    {"knda", "kannada"},     {"kana", "katakana"},
    {"khoj", "khojki"},      {"krai", "kiratrai"},    {"laoo", "lao"},
    {"latn", "latin"},       {"mymr", "myanmar"},     {"nagm", "nagmundari"},
    {"onao", "olonal"},      {"sunu", "sunuwar"},     {"todr", "todhri"},
    {"tutg", "tulutigalari"}};

/// Lower case, without blanks, hyphens and underscores, which names of properties do not depend on.
std::string normal(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::string_view(" -_").find(c) == std::string_view::npos)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

constexpr std::uint32_t code_points = 0x110000, first_surrogate = 0xD800,
                        end_of_surrogates = 0xE000;

std::string every_character() {
  std::string all;
  for (std::uint32_t c = 0; c < code_points; ++c)
    if (c < first_surrogate || c >= end_of_surrogates) append_utf8(c, all);
  return all;
}

/// Ranges of a property that PCRE2 may lack.
std::string more_of(const std::string& name) {
  std::string text;
  for (const Addition& one : additions)
    if (one.property == name) text += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", one.first, one.last);
  return text;
}

const Category* category_of(const std::string& name) {
  for (const Category& one : categories)
    if (name == one.long_name || name == normal(one.name)) return &one;
  return nullptr;
}

std::string contents_of(const Category& category) {
  std::string text = category.name == "LC" ? "\\p{L&}" : fmt::format("\\p{{{}}}", category.name);
  const std::string_view parts = category.parts.empty() ? category.name : category.parts;
  for (std::size_t i = 0; i < parts.size(); i += 2) text += more_of(normal(parts.substr(i, 2)));
  return text;
}

std::string contents_of(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += contents_of(*category_of(normal(name)));
  return text;
}

/// A script, whose characters PCRE2 names sc; a script that it does not know consists of additions.
std::optional<CharacterSet> script(const std::string& name) {
  std::string known = fmt::format("\\p{{sc:{}}}", name);
  try {
    const Regex tried(known);
  } catch (const UserError&) {
    known.clear();
  }
  std::string_view long_name = name;
  for (const auto& [abbreviation, full] : abbreviations)
    if (name == abbreviation) long_name = full;
  const std::string more = more_of(std::string(long_name));
  if (known.empty() && more.empty()) return std::nullopt;
  return CharacterSet{known + more};
}

}  // namespace

std::string complement_of(const std::string& inside) {
  static const std::string all = every_character();
  std::string ranges;
  std::uint32_t next = 0;
  const auto add_until = [&](std::uint32_t end) {
    const std::uint32_t first = next == first_surrogate ? end_of_surrogates : next;
    const std::uint32_t last = end == end_of_surrogates ? first_surrogate - 1 : end - 1;
    if (first < end && first <= last) ranges += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", first, last);
  };
  Regex(fmt::format("[{}]+", inside)).for_each_match(all, [&](std::size_t from, std::size_t to) {
    const char *first = all.data() + from, *last = all.data() + to - 1;
    while ((static_cast<unsigned char>(*last) & 0xc0) == 0x80) --last;
    add_until(next_code_point(first));
    next = next_code_point(last) + 1;
  });
  add_until(code_points);
  return ranges;
}

CharacterSet white_space() {
  return {
      "\\t-\\r "
      "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"};
}

CharacterSet hex_digits() { return {"0-9A-Fa-f"}; }

CharacterSet word_characters(bool in_brackets) {
  return {contents_of({"L", "M", "Nd", "Pc"}) + "\\p{Alphabetic}" +
          (in_brackets ? "" : "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}")};
}

std::optional<CharacterSet> property(std::string_view given) {
  const std::string name = normal(given);
  if (const Category* category = category_of(name)) return CharacterSet{contents_of(*category)};
  // What is not assigned shrinks with each version.
  if (name == "c" || name == "other")
    return CharacterSet{contents_of({"L", "M", "N", "P", "S", "Z"}), true};
  if (name == "cn" || name == "unassigned")
    return CharacterSet{contents_of({"L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cs"}), true};
  if (name == "any") return CharacterSet{"\\x{0}-\\x{10FFFF}"};
  if (name == "ascii") return CharacterSet{"\\x{0}-\\x{7F}"};
  if (name == "digit") return CharacterSet{contents_of({"Nd"})};
  if (name == "punct") return CharacterSet{contents_of({"P"})};
  if (name == "cntrl") return CharacterSet{contents_of({"Cc"})};
  if (name == "space" || name == "whitespace") return white_space();
  if (name == "xdigit") return hex_digits();
  return script(name);
}

}  // namespace tern::text::detail
