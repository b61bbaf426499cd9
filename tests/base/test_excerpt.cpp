// What reaches a terminal: text stays readable, control characters do not act.
#include <cstdio>

#include "base/log.hpp"
#include "base/utf8.hpp"
#include "scratch.hpp"

namespace tern {
namespace {

TEST(Printable, TextInAnyScriptStaysAsItIs) {
  for (const std::string text : {"", "plain", "größer, 言葉, مرحبا, 🦜, e\u0301, \u00a0",
                                 "two\nlines\tand a tab", "DOS\r\nlines"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ControlCharactersAndBytesAreWrittenOut) {
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("over\rwritten\b\a\x7f"), "over\\x0dwritten\\x08\\x07\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b[31m"), "\\xc2\\x9b[31m");  // CSI in one character
  // Not UTF-8: a byte alone, a cut character, overlong forms, a surrogate, beyond U+10FFFF.
  EXPECT_EQ(printable("\x9b|\xe2\x82|\xc0\x9b|\xe0\x80\x9b|\xed\xa0\x80|\xf4\x90\x80\x80"),
            "\\x9b|\\xe2\\x82|\\xc0\\x9b|\\xe0\\x80\\x9b|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80");
}

TEST(Printable, NamesStayOnOneLine) {
  EXPECT_EQ(on_one_line("a\nerror: b\r\tc\x1b"), "a\\nerror: b\\r\\tc\\x1b");
  EXPECT_EQ(excerpt("a\nb"), "a\\nb");
  EXPECT_EQ(excerpt("größer", 3), "gr...");
  EXPECT_EQ(excerpt("grö\n", 4), "grö...");
}

TEST(Printable, IsWhatTheLogHolds) {
  const test::Scratch scratch;
  {
    Log log;
    log.open(scratch / "log.txt");
    log.line("sample {}", "\x1b]0;title\a and größer");
    log.warning("{}", "\x1b[2J");
  }
  EXPECT_EQ(scratch.read("log.txt"), "sample \\x1b]0;title\\x07 and größer\nwarning: \\x1b[2J\n");
}

}  // namespace
}  // namespace tern
