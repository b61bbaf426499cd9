#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scratch.hpp"
#include "text/detail/pretokenizer.hpp"
#include "text/texts.hpp"
#include "text/unicode.hpp"

namespace tern::text::detail {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(const detail::Pretokenizer& pretokenizer, std::string_view text) {
  Pieces pieces;
  pretokenizer.split(text, pieces);
  return pieces;
}

TEST(CharClasses, WhiteSpaceIsTheUnicodeProperty) {
  const CharClasses& classes = CharClasses::instance();
  std::vector<std::uint32_t> spaces;
  for (std::uint32_t c = 0; c < 0x110000; ++c)
    if (classes[c] == CharClass::space) spaces.push_back(c);
  EXPECT_EQ(spaces, (std::vector<std::uint32_t>{
                        9,      10,     11,     12,     13,     32,     0x85,   0xa0,   0x1680,
                        0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                        0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000}));
  EXPECT_EQ(classes['a'], CharClass::letter);
  EXPECT_EQ(classes[0xaa], CharClass::letter);  // feminine ordinal
  EXPECT_EQ(classes[0xbd], CharClass::number);  // one half
  EXPECT_EQ(classes[0x300], CharClass::other);  // combining grave
  EXPECT_EQ(classes[0x4e00], CharClass::letter);
  EXPECT_EQ(classes[0x1f600], CharClass::other);
}

/// What Unicode 15 and 16 added: ideographs, and the digits and letters of one of the scripts.
TEST(CharClasses, AreThoseOfUnicode16WithAnyPcre2) {
  const CharClasses& classes = CharClasses::instance();
  EXPECT_EQ(classes[0x31350], CharClass::letter);
  EXPECT_EQ(classes[0x2ebf0], CharClass::letter);
  EXPECT_EQ(classes[0x1e4ef], CharClass::other);
  EXPECT_EQ(classes[0x1e4f0], CharClass::number);
  std::string text = "a1";
  for (const std::uint32_t c : {0x31350, 0x1e4f0, 0x1e4f9}) append_utf8(c, text);
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\p{L}+|\\p{N}+"), text).size(), 4u);
  EXPECT_EQ(split(*detail::regex_pretokenizer("[\\p{L}\\p{N}]+"), text).size(), 1u);
}

TEST(Gpt2Pretokenizer, CutsAsTheModelWasTrained) {
  const auto gpt2 = detail::gpt2_pretokenizer();
  EXPECT_EQ(split(*gpt2, "Hello world's 123rd test!!  \n\n  It'll've done  "),
            (Pieces{"Hello", " world", "'s", " 123", "rd", " test", "!!", "  \n\n ", " It", "'ll",
                    "'ve", " done", "  "}));
  EXPECT_EQ(split(*gpt2, "'S 'x ' \t\ta\n\nb"),
            (Pieces{"'", "S", " '", "x", " '", " \t", "\t", "a", "\n", "\n", "b"}));
  EXPECT_EQ(split(*gpt2, ""), Pieces{});
  EXPECT_EQ(split(*gpt2, " "), Pieces{" "});
  EXPECT_EQ(split(*gpt2, "'"), Pieces{"'"});
  EXPECT_EQ(split(*gpt2, "'r"), (Pieces{"'", "r"}));
}

/// Our matcher compared with PCRE2 on the pattern itself.
TEST(Gpt2Pretokenizer, EqualsItsPattern) {
  const auto ours = detail::gpt2_pretokenizer();
  const auto pattern = detail::regex_pretokenizer(std::string("(?:") + gpt2_pattern + ")");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = test::random_unicode(random, random() % 40);
    ASSERT_EQ(split(*ours, text), split(*pattern, text)) << text;
  }
  const std::string corpus = test::small_corpus();
  EXPECT_EQ(split(*ours, corpus), split(*pattern, corpus));
}

TEST(Gpt2Pretokenizer, EqualsItsPatternOnEveryCodePoint) {
  const auto ours = detail::gpt2_pretokenizer();
  const auto pattern = detail::regex_pretokenizer(std::string("(?:") + gpt2_pattern + ")");
  std::string text;
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    append_utf8(c, text);
    text += c % 3 == 0 ? "a " : c % 3 == 1 ? " 1" : "  ";
  }
  EXPECT_EQ(split(*ours, text), split(*pattern, text));
}

TEST(Gpt4Pretokenizer, CutsAsTheModelWasTrained) {
  const auto gpt4 = detail::regex_pretokenizer(gpt4_pattern);
  EXPECT_EQ(split(*gpt4, "Hello world'S 12345 (foo)!!\n\n  x\t\ty \r\n"),
            (Pieces{"Hello", " world", "'S", " ", "123", "45", " (", "foo", ")!!\n\n", " ", " x",
                    "\t", "\ty", " \r\n"}));
}

TEST(RegexPretokenizer, WhiteSpaceIsTheUnicodePropertyInsideAndOutsideBrackets) {
  const std::string vowel_separator =
      "\xe1\xa0\x8e";  // U+180E: PCRE2's own \s takes it for a space
  const auto outside = detail::regex_pretokenizer("\\s+|\\S+");
  EXPECT_EQ(split(*outside, "a" + vowel_separator +
                                "b \xe3\x80\x80"
                                "c")
                .size(),
            3u);
  const auto inside = detail::regex_pretokenizer("[\\s]+|[^\\s]+");
  EXPECT_EQ(split(*inside, "a" + vowel_separator +
                               "b \xe3\x80\x80"
                               "c")
                .size(),
            3u);
}

TEST(RegexPretokenizer, GapsAreKeptOrRemoved) {
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\d+"), "ab12cd3"), (Pieces{"ab", "12", "cd", "3"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\d+", detail::Gaps::remove), "ab12cd3"),
            (Pieces{"12", "3"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("x*"), "axxb"), (Pieces{"a", "xx", "b"}));
}

/// As tokenizers 0.23 splits them.
TEST(RegexPretokenizer, WhatOnigurumaMeansIsMeant) {
  EXPECT_EQ(split(*detail::regex_pretokenizer("a$"), "ba\nca\n"),
            (Pieces{"b", "a", "\nc", "a", "\n"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("^a"), "ba\na\n"), (Pieces{"ba\n", "a", "\n"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("a{,2}"), "aaab"), (Pieces{"aa", "a", "b"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("[\\h]"), "agz"), (Pieces{"a", "gz"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("[\\H]"), "agz"), (Pieces{"a", "g", "z"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\h+|\\H"), "af \tx"),
            (Pieces{"af", " ", "\t", "x"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\v"), "a\nb\vc"), (Pieces{"a\nb", "\v", "c"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("(?m).+"), "a\nb"), Pieces{"a\nb"});
  EXPECT_EQ(split(*detail::regex_pretokenizer("(?mi:A.)"), "xa\nb"), (Pieces{"x", "a\n", "b"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer(".+"), "a\nb"), (Pieces{"a", "\n", "b"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("\\u0061"), "ab"), (Pieces{"a", "b"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("[$^{.]"), "a$^b"), (Pieces{"a", "$", "^", "b"}));
  EXPECT_EQ(split(*detail::regex_pretokenizer("{x}"), "a{x}"), (Pieces{"a", "{x}"}));
}

nlohmann::json golden() {
  std::ifstream file(std::string(TERN_SOURCE_DIR) + "/tests/golden/patterns.json");
  return nlohmann::json::parse(file);
}

TEST(RegexPretokenizer, SplitsAsOnigurumaDoes) {
  const auto all = golden();
  std::size_t pieces = 0;
  for (const auto& split_of : all.at("splits")) {
    const std::string pattern = split_of.at(0);
    const auto pretokenizer = detail::regex_pretokenizer(pattern);
    for (std::size_t i = 0; i < all.at("texts").size(); ++i) {
      const std::string text = all.at("texts").at(i);
      std::vector<std::size_t> lengths;
      for (const std::string_view piece : split(*pretokenizer, text))
        lengths.push_back(piece.size());
      EXPECT_EQ(lengths, split_of.at(1).at(i).get<std::vector<std::size_t>>())
          << pattern << " in " << text;
      pieces += lengths.size();
    }
  }
  EXPECT_GT(pieces, 15000u);
}

/// All characters of Unicode 16, with any PCRE2; complements in brackets, too.
TEST(RegexPretokenizer, PropertiesAreOnigurumas) {
  const auto all = golden();
  std::string text;
  for (const auto& run : all.at("assigned"))
    for (std::uint32_t c = run.at(0); c <= run.at(1); ++c) append_utf8(c, text);
  std::size_t characters = 0;
  for (const char c : text) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  const std::set<std::string> in_brackets{"L", "Nd", "Po", "Han", "C"};
  for (const auto& [name, expected] : all.at("properties").items())
    for (const auto& [form, complement] : std::initializer_list<std::pair<const char*, bool>>{
             {"\\p{{{}}}+", false}, {"[\\P{{{}}}]+", true}, {"[^\\P{{{}}}]+", false}}) {
      if (form[0] == '[' && !in_brackets.contains(name)) continue;
      const auto set =
          detail::regex_pretokenizer(fmt::format(fmt::runtime(form), name), detail::Gaps::remove);
      std::uint64_t count = 0, sum = 0, squares = 0;
      for (const std::string_view piece : split(*set, text))
        for (const char* p = piece.data(); p < piece.data() + piece.size();) {
          const std::uint64_t c = next_code_point(p);
          if (c == 0x1171e) continue;  // Mn until Unicode 15.1, then Mc
          ++count, sum += c, squares += c * c;
        }
      if (complement) {
        EXPECT_EQ(count + expected.at(0).get<std::uint64_t>() + 1, characters) << name;
        continue;
      }
      EXPECT_EQ(count, expected.at(0)) << form << name;
      EXPECT_EQ(sum, expected.at(1)) << form << name;
      EXPECT_EQ(squares, expected.at(2)) << form << name;
    }
}

TEST(RegexPretokenizer, WhatHasNoTranslationIsNamed) {
  for (const auto& [pattern, named] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[a-z&&[^c]]", "&& at character 5"},
           {"[a[bc]]", "[ at character 3"},
           {"[[:punct:]]", "[ at character 2"},
           {"[]a]", "] at character 2"},
           {"x\\b", "\\b at character 2"},
           {"\\pL", "\\p at character 1"},
           {"a\\p{Foo}", "\\p{Foo} at character 2"},
           {"\\p{L&}", "\\p{L&}"},
           {"\\p{Lu", "\\p at"},
           {"\\x{6e 6f}", "\\x at"},
           {"\\x{110000}", "\\x at"},
           {"\\x{zz}", "\\x at"},
           {"a\\x", "\\x at character 2"},
           {"\\xC3\\xA9", "\\x at"},
           {"\\u{6e}", "\\u at"},
           {"\\u00e", "\\u at"},
           {"\\o{156}", "\\o"},
           {"\\N{U+6e}", "\\N"},
           {"(a)\\g{1}", "\\g at character 4"},
           {"(?<n>a)\\k{n}", "\\k"},
           {"[\\k<n>]", "\\k"},
           {"[\\R]", "\\R"},
           {"\\303\\251", "\\3"},
           {"\\c[", "\\c"},
           {"a\\Kb", "\\K"},
           {"a{1,2}+", "{1,2}+"},
           {"a{2}?", "{2}?"},
           {"(?P<n>a)", "(?P"},
           {"(?s).", "(?s"},
           {"(*ANY)a", "(*"}})
    test::expect_user_error([&] { detail::regex_pretokenizer(pattern); }, {pattern, named});
}

TEST(RegexPretokenizer, AMistakeInAPatternIsQuoted) {
  test::expect_user_error([] { detail::regex_pretokenizer("a(b"); }, {"a(b", "character 4"});
}

TEST(Chain, EachStageCutsThePiecesOfTheOneBefore) {
  std::vector<std::unique_ptr<detail::Pretokenizer>> stages;
  stages.push_back(detail::regex_pretokenizer("\\p{N}"));
  stages.push_back(detail::gpt2_pretokenizer());
  EXPECT_EQ(split(*detail::chain(std::move(stages)), "ab 12 c"),
            (Pieces{"ab", " ", "1", "2", " c"}));
  EXPECT_EQ(split(*detail::chain({}), "ab 12"), Pieces{"ab 12"});
}

}  // namespace
}  // namespace tern::text::detail
