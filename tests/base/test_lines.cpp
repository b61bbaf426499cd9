#include <gtest/gtest.h>

#include "base/lines.hpp"
#include "scratch.hpp"

namespace tern {
namespace {

using namespace std::literals;
using test::Scratch, test::expect_user_error;

TEST(Lines, AreNumberedAndWithoutTheirEnds) {
  std::vector<std::string> seen;
  for (const auto& [text, number, ended] : Lines("one\n\n three \r\nfour"sv))
    seen.push_back(fmt::format("{}:{}:{}", number, text, ended));
  EXPECT_EQ(seen, (std::vector<std::string>{"1:one:true", "2::true", "3: three \r:true",
                                            "4:four:false"}));
  EXPECT_FALSE(Lines(""sv).next());
  Lines ended("a\n"sv);
  EXPECT_TRUE(ended.next()->ended);
  EXPECT_FALSE(ended.next());
  EXPECT_EQ(trimmed_lines("\n a \n\t\nb"), (std::vector<std::string_view>{"a", "b"}));
}

TEST(Lines, OfAFileNameTheirPlace) {
  const Scratch scratch;
  scratch.write("x.jsonl", "{}\n\n{}\n");
  LineReader lines(scratch / "x.jsonl");
  std::size_t blank = 0;
  std::string last;
  for (const Line& line : lines) {
    blank += line.blank() ? 1 : 0;
    last = lines.place(line);
  }
  EXPECT_EQ(blank, 1u);
  EXPECT_EQ(last, (scratch / "x.jsonl").string() + ":3");
  EXPECT_EQ(lines.text(), "{}\n\n{}\n");
}

TEST(Lines, StayInMemoryWithTheirOwner) {
  const Scratch scratch;
  scratch.write("x", "kept\n");
  std::shared_ptr<const void> owner;
  std::string_view text;
  {
    LineReader lines(scratch / "x");
    text = lines.next()->text;
    owner = lines.owner();
  }
  EXPECT_EQ(text, "kept");
}

TEST(Lines, OfAMissingFileAreRefusedWithTheRemedy) {
  const Scratch scratch;
  expect_user_error([&] { LineReader(scratch / "missing", "pass a file of names"); },
                    {"missing", "cannot be opened", "pass a file of names"});
}

TEST(Lines, HoldJsonWhereTheEndingSaysSo) {
  EXPECT_TRUE(holds_json_lines("a/b.jsonl"));
  EXPECT_TRUE(holds_json_lines("b.ndjson"));
  EXPECT_FALSE(holds_json_lines("b.json"));
  EXPECT_FALSE(holds_json_lines("jsonl"));
}

}  // namespace
}  // namespace tern
