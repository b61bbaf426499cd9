#include <gtest/gtest.h>

#include "answer/answer_reader.hpp"
#include "answer/requests.hpp"
#include "scratch.hpp"

namespace tern::answer {
namespace {

using test::expect_user_error;
using test::Scratch;
using test::write_file;

AnswerReader reader(const std::string& pattern, std::vector<std::string> stop = {},
                    bool thinking = false) {
  return AnswerReader(
      {{thinking ? text::ChatTemplate::qwen3 : text::ChatTemplate::chatml, thinking},
       pattern,
       std::move(stop)});
}

std::string good(const AnswerReader& reader, std::string_view written, bool cut = false) {
  const ReadAnswer answer = reader.read(written, cut);
  return answer.reject.empty() ? answer.text : "reject: " + answer.reject;
}

TEST(Answer, IsWhatThePatternKeeps) {
  EXPECT_EQ(good(reader("(?m)^Final Answer: (\\w\\w)$"), "I think.\nFinal Answer: en\n"), "en");
  EXPECT_EQ(good(reader("^\\w\\w$"), " en \n"), "en");
  EXPECT_EQ(good(reader("^code ?(\\w\\w)?"), "code"), "reject: empty");
  EXPECT_EQ(good(reader("^\\p{L}+$"), "ναί"), "ναί");
  EXPECT_EQ(good(reader("^(a)|b$"), "b"), "reject: empty");
  const ReadAnswer answer = reader("^\\w\\w$").read("none\n", false);
  EXPECT_EQ(answer.reject, "pattern");
  EXPECT_EQ(answer.text, "none\n");
  EXPECT_EQ(good(reader(""), "\n any thing "), "any thing");
  EXPECT_EQ(good(reader(""), " \n"), "reject: empty");
}

TEST(Answer, ThatIsCutNeedsAPattern) {
  EXPECT_EQ(good(reader(""), "abc", true), "reject: cut");
  EXPECT_EQ(good(reader("^(\\w\\w) "), "en because", true), "en");
  EXPECT_EQ(good(reader("^(\\w\\w)$"), "en because", true), "reject: pattern");
}

/// A base model's text ends where max_tokens ends it, unless the deck says how it ends.
TEST(Answer, ThatContinuesATextMayEndAnywhere) {
  const auto continues = [](const std::string& pattern, std::vector<std::string> stop) {
    return AnswerReader({{}, pattern, std::move(stop), true});
  };
  const auto any = continues("", {});
  for (const bool cut : {false, true}) {
    EXPECT_EQ(good(any, " and on\n", cut), " and on\n");
    EXPECT_EQ(good(any, "", cut), "");
    EXPECT_EQ(good(any,
                   "a\xff"
                   "b",
                   cut),
              "reject: not UTF-8");
    EXPECT_EQ(good(any, "\xce\xbd\xb1", cut), "reject: not UTF-8");
  }
  for (const char* part : {"\xce", "\xe2\x82", "\xf0\x9f\x98"}) {
    EXPECT_EQ(good(any, std::string(" \xce\xbd") + part, true), " \xce\xbd");
    EXPECT_EQ(good(any, std::string(" \xce\xbd") + part, false), "reject: not UTF-8");
  }
  EXPECT_EQ(good(continues("", {"###"}), " one###two"), " one");
  EXPECT_EQ(good(continues("", {"###"}), " one", true), "reject: cut");
  EXPECT_EQ(good(continues("^\\w+$", {}), " one ", true), "one");
  EXPECT_EQ(good(continues("^\\w+$", {}), " one two", true), "reject: pattern");
}

TEST(Answer, EndsAtTheFirstStop) {
  const auto stopping = reader("", {"###", "\n\n"});
  EXPECT_EQ(stopping.longest_stop(), 3u);
  EXPECT_TRUE(stopping.stops("a###b"));
  EXPECT_FALSE(stopping.stops("a##\nb"));
  EXPECT_EQ(good(stopping, "one\n\ntwo###three"), "one");
  EXPECT_EQ(good(stopping, "###"), "reject: empty");
  // The text after the stop may be half a character.
  EXPECT_EQ(good(stopping, "one###\xe2\x82"), "one");
  EXPECT_EQ(good(stopping, "one\xe2\x82"), "reject: not UTF-8");
}

TEST(Answer, FollowsTheThoughts) {
  const auto thinking = reader("^\\w\\w$", {}, true);
  EXPECT_EQ(good(thinking, "<think>\nis it de?\n</think>\n\nen"), "en");
  EXPECT_EQ(good(thinking, "<think>\nis it"), "reject: thoughts");
  EXPECT_EQ(good(reader("^\\w\\w$"), "<think>\n</think>en"), "reject: pattern");
}

TEST(Answer, RefusesAPatternThatIsNone) {
  expect_user_error([] { reader("a(b"); }, {"a(b", "at character"});
  expect_user_error([] { reader("", {"x", ""}); }, {"stop", "empty"});
}

TEST(Requests, AreLinesOrJson) {
  const Scratch folder;
  const auto lines = read_requests(write_file(folder / "a.txt", "one\r\n\n  two \n{\"text\": 1}"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[1].text, "  two ");
  EXPECT_EQ(lines[1].id, 3);
  EXPECT_TRUE(lines[1].label.is_null());
  EXPECT_EQ(lines[2].text, "{\"text\": 1}");
  const auto json = read_requests(write_file(
      folder / "a.jsonl",
      "{\"text\": \"ä\\n\", \"id\": \"x7\", \"label\": 3}\n\n{\"other\": 1, \"text\": \"b\"}\n"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].text, "ä\n");
  EXPECT_EQ(plain_text(json[0].id), "x7");
  EXPECT_EQ(plain_text(json[0].label), "3");
  EXPECT_EQ(json[1].id, 3);
}

TEST(Requests, MistakesNameFileAndLine) {
  const Scratch folder;
  const auto refuses = [&](const std::string& text, std::initializer_list<std::string> parts) {
    const auto file = write_file(folder / "r.jsonl", text);
    expect_user_error([&] { read_requests(file); }, parts);
  };
  refuses("", {"r.jsonl", "no requests"});
  refuses("{\"text\": \"a\"}\n{", {"r.jsonl:2", "not JSON"});
  refuses("{\"text\": \"a\"}\n3\n", {"r.jsonl:2", "object"});
  refuses("{\"text\": 3}", {"r.jsonl:1", "\"text\""});
  refuses("{\"text\": \"a\", \"label\": [1]}", {"r.jsonl:1", "\"label\""});
  refuses("{\"text\": \"a\xff\"}", {"r.jsonl:1", "UTF-8"});
  refuses("{\"text\": \"a\", \"id\": 2}\n{\"text\": \"a\"}\n", {"r.jsonl:2", "id 2", "line 1"});
}

TEST(Prompt, TakesTheTextAtItsPlaces) {
  const Scratch folder;
  const PromptTemplate prompt(write_file(folder / "p.txt", "Say {text}!\n{text}?\n"));
  EXPECT_EQ(prompt.fill("a{text}"), "Say a{text}!\na{text}?");
  EXPECT_EQ(PromptTemplate().fill("a"), "a");
  const auto none = write_file(folder / "n.txt", "Say {}");
  expect_user_error([&] { PromptTemplate{none}; }, {"n.txt", "{text}"});
}

}  // namespace
}  // namespace tern::answer
