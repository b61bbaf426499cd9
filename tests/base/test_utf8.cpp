#include <gtest/gtest.h>

#include "base/utf8.hpp"

namespace tern {
namespace {

TEST(Utf8, LengthFollowsTheTableOfWellFormedSequences) {
  const struct {
    std::string bytes;
    std::size_t length;
  } cases[] = {{"", 0},
               {"a", 1},
               {"\x7f", 1},
               {"\x80", 0},
               {"\xc1\xbf", 0},  // overlong
               {"\xc2\x80", 2},
               {"\xdf\xbf", 2},
               {"\xc3", 0},  // cut short
               {"\xc3 ", 0},
               {"\xe0\x9f\xbf", 0},  // overlong
               {"\xe0\xa0\x80", 3},
               {"\xed\x9f\xbf", 3},
               {"\xed\xa0\x80", 0},  // surrogate
               {"\xef\xbf\xbf", 3},
               {"\xe2\x82", 0},
               {"\xf0\x8f\xbf\xbf", 0},  // overlong
               {"\xf0\x90\x80\x80", 4},
               {"\xf4\x8f\xbf\xbf", 4},
               {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
               {"\xf5\x80\x80\x80", 0},
               {"\xf0\x9f\x98", 0}};
  for (const auto& each : cases) EXPECT_EQ(utf8_length(each.bytes), each.length) << each.bytes;
}

TEST(Utf8, EveryCodePointGoesThroughEncodingAndBack) {
  std::string text;
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    text.clear();
    append_utf8(c, text);
    ASSERT_EQ(utf8_length(text), text.size()) << c;
    const char* p = text.data();
    ASSERT_EQ(next_code_point(p), c);
    ASSERT_EQ(p, text.data() + text.size());
  }
}

TEST(Utf8, PrefixEndsAtTheFirstBadByte) {
  const std::string good = "0123456789 caf\xc3\xa9 \xe4\xbd\xa0\xf0\x9f\x98\x80";
  EXPECT_EQ(valid_utf8_prefix(good), good.size());
  for (const std::string bad : {"\xff", "\xc3", "\x80", "\xed\xa0\x80"}) {
    EXPECT_EQ(valid_utf8_prefix(good + bad), good.size());
    EXPECT_EQ(valid_utf8_prefix(good + bad + good), good.size());
  }
}

}  // namespace
}  // namespace tern
