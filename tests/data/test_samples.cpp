#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "data/samples.hpp"
#include "data/skeleton.hpp"
#include "scratch.hpp"

namespace tern::data {
namespace {

using test::expect_user_error;
using test::Scratch;
using test::write_file;

const std::string robe = "A robe takes 2 bolts of blue fiber and half that much white fiber.";
const std::string robe_steps =
    "It takes 2/2=<<2/2=1>>1 bolt of white fiber\nThe total is 2+1=<<2+1=3>>3 bolts";

std::string line(const nlohmann::json& object) { return object.dump() + "\n"; }

TEST(Numbers, AreBroughtToOneForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"72", "72"},     {"1,000", "1000"},     {"72.", "72"},
      {"7.50", "7.5"},  {"$1,234.00", "1234"}, {" 5 ", "5"},
      {"-3", "-3"},     {"- 3", "-3"},         {"$-3.10", "-3.1"},
      {"-$3", "-3"},    {"007", "7"},          {"0", "0"},
      {"-0.0", "0"},    {".5", "0.5"},         {"100", "100"},
      {"0.05", "0.05"}, {"10 000", "10000"},   {"98765432109876543210", "98765432109876543210"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(normalized_number(text), expected) << text;
  for (const char* text :
       {"", " ", ".", "-", "$", "abc", "7a", "5%", "1.2.3", "3-4", "1e5", "5\n6"})
    EXPECT_EQ(normalized_number(text), std::nullopt) << text;
}

TEST(Numbers, FinalOneStandsAfterTheLastMark) {
  EXPECT_EQ(final_number("a\n#### 72"), "72");
  EXPECT_EQ(final_number("a\n####1,200.\nmore 5"), "1200");
  EXPECT_EQ(final_number("#### 1\n#### 2"), "2");
  EXPECT_EQ(final_number("#### 1\n#### two"), std::nullopt);
  EXPECT_EQ(final_number("the answer is 72"), std::nullopt);
  EXPECT_EQ(final_number("####\n72"), std::nullopt);
  EXPECT_EQ(final_number(""), std::nullopt);
}

TEST(Skeleton, FollowsItsExamples) {
  EXPECT_EQ(skeleton("Natalia sold 48/2 = <<48/2=24>>24 clips in May.\n"
                     "Natalia sold 48+24 = <<48+24=72>>72 clips in all.\n#### 72"),
            "Natalia sold _/_ = _ clips in May.\nNatalia sold _+_ = _ clips in all.");
  EXPECT_EQ(skeleton("The repairs cost 80,000*1.5=$<<80000*1.5=120000>>120,000\n"
                     "So 25%  are   $30,000.\n#### 30000"),
            "The repairs cost _*_=$_\nSo _% are $_.");
}

TEST(Skeleton, OfOddTexts) {
  EXPECT_EQ(skeleton(""), "");
  EXPECT_EQ(skeleton("#### 5"), "");
  EXPECT_EQ(skeleton("\n  two eggs \r\n\n\t3,4 and 5, 6.\n"), "two eggs\n_ and _, _.");
  EXPECT_EQ(skeleton("1 << 2"), "_ << _");
  EXPECT_EQ(skeleton("x<<1=1>>y<<2=2>>"), "xy");
}

TEST(Samples, ReadsGsm8kLines) {
  const Scratch scratch;
  write_file(scratch / "a.jsonl", line({{"question", robe}, {"answer", robe_steps + "\n#### 3"}}) +
                                      "\r\n\n" +
                                      line({{"question", " Q? "}, {"answer", "#### 1,250.00"}}));
  const auto samples = read_samples({(scratch / "*.jsonl").string()});
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0],
            (Sample{robe, "It takes _/_=_ bolt of white fiber\nThe total is _+_=_ bolts",
                    robe_steps + "\n#### 3", "3"}));
  EXPECT_EQ(samples[1], (Sample{"Q?", "", "#### 1250", "1250"}));
}

TEST(Samples, ReadsSocraticLines) {
  const Scratch scratch;
  const std::string answer =
      "How many white? ** It takes 2/2=<<2/2=1>>1 bolt of white fiber\n"
      "How many in all? ** The total is 2+1=<<2+1=3>>3 bolts\n#### 3";
  const auto file =
      write_file(scratch / "a.jsonl", line({{"question", robe}, {"answer", answer}})).string();
  const auto samples = read_samples({file});
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0],
            (Sample{robe, "How many white?\nHow many in all?", robe_steps + "\n#### 3", "3"}));
  const auto dropped = read_samples({file}, PlanRule::data, Notes::drop);
  EXPECT_EQ(dropped[0].execution,
            "It takes 2/2=1 bolt of white fiber\nThe total is 2+1=3 bolts\n#### 3");
  const auto skeletons = read_samples({file}, PlanRule::skeleton);
  EXPECT_EQ(skeletons[0].plan, "It takes _/_=_ bolt of white fiber\nThe total is _+_=_ bolts");
  EXPECT_EQ(skeletons[0].execution, samples[0].execution);
  EXPECT_EQ(read_samples({file}, PlanRule::none)[0].plan, "");
}

TEST(Samples, APowerIsNotASubQuestion) {
  const Scratch scratch;
  const std::string answer = "The side is 3.\nThe area is 3 ** 2 = 9.\n#### 9";
  const auto file = write_file(scratch / "a", line({{"question", "Q"}, {"answer", answer}}));
  EXPECT_EQ(read_samples({file.string()})[0].plan, "The side is _.\nThe area is _ ** _ = _.");
}

TEST(Samples, ReadsPlansInLinesAndArrays) {
  const Scratch scratch;
  const nlohmann::json first = {{"id", "x_0"},          {"question", "Q1"},
                                {"full_text", "..."},   {"plan", "Add.\nDouble."},
                                {"execution", "1+1=2"}, {"answer", "2,125"}};
  const nlohmann::json second = {{"question", "Q2"},
                                 {"plan", "Halve."},
                                 {"execution", "15/2=7.5\n#### 7.50"},
                                 {"answer", 7.5}};
  const nlohmann::json third = {{"question", "Q3"}, {"execution", "5-2=3"}, {"answer", 3}};
  write_file(scratch / "a.json", nlohmann::json{first, second, third}.dump(2));
  write_file(scratch / "b.jsonl", line(first) + line(second) + line(third));
  const std::vector<Sample> expected = {{"Q1", "Add.\nDouble.", "1+1=2\n#### 2125", "2125"},
                                        {"Q2", "Halve.", "15/2=7.5\n#### 7.5", "7.5"},
                                        {"Q3", "_-_=_", "5-2=3\n#### 3", "3"}};
  EXPECT_EQ(read_samples({(scratch / "a.json").string()}), expected);
  EXPECT_EQ(read_samples({(scratch / "b.jsonl").string()}), expected);
  EXPECT_EQ(read_samples({(scratch / "?.json*").string(), (scratch / "a.json").string()}).size(),
            6u);
}

TEST(Samples, MistakesNameFileAndLine) {
  const Scratch scratch;
  const auto fails = [&](const std::string& text, std::initializer_list<std::string> parts) {
    const auto file = write_file(scratch / "a.jsonl", text);
    expect_user_error([&] { read_samples({file.string()}); }, parts);
  };
  const std::string good = line({{"question", "Q"}, {"answer", "#### 1"}});
  fails("", {"a.jsonl", "empty"});
  fails(" \n\n", {"a.jsonl", "empty"});
  fails("[]", {"a.jsonl", "no samples"});
  fails(good + "\n{\"question\": \n", {"a.jsonl:3", "not JSON", "one object on each line"});
  fails("[{\"question\": 1}", {"a.jsonl", "not JSON", "JSON array"});
  fails(good + "5\n", {"a.jsonl:2", "not a JSON object"});
  fails(good + line({{"text", "x"}, {"id", 1}}),
        {"a.jsonl:2", "no \"question\"", "\"id\", \"text\""});
  fails(line({{"question", "Q"}}), {"a.jsonl:1", "no \"answer\""});
  fails(line({{"question", 5}, {"answer", "#### 1"}}), {"a.jsonl:1", "\"question\" is 5"});
  fails(line({{"question", "  "}, {"answer", "#### 1"}}), {"a.jsonl:1", "\"question\" is empty"});
  fails(line({{"question", "Q"}, {"answer", "1+1=2"}}), {"a.jsonl:1", "#### 72", "execution"});
  fails(line({{"question", "Q"}, {"answer", "x\n#### two"}}), {"a.jsonl:1", "#### two"});
  fails("[" + good + ", {\"question\": \"Q\", \"execution\": \"x\", \"answer\": \"two\"}]",
        {"a.jsonl[1]", "'two'", "not a single number"});
  fails(line({{"question", "Q"}, {"execution", "x\n#### 5"}, {"answer", 6}}),
        {"a.jsonl:1", "\"answer\" is 6", "#### 5"});
  fails(line({{"question", "Q"}, {"execution", "x"}}), {"a.jsonl:1", "no \"answer\""});
  fails(line({{"question", "Q"}, {"execution", "x"}, {"plan", 1}, {"answer", 6}}),
        {"a.jsonl:1", "\"plan\" is 1"});
  expect_user_error([&] { read_samples({(scratch / "gone*.jsonl").string()}); },
                    {"gone*.jsonl", "prepare arithmetic"});
  expect_user_error([] { read_samples({}); }, {"no file of samples given"});
  expect_user_error([] { read_samples({"data/quickstart/train.jsonl"}); },
                    {"data/quickstart/train.jsonl", "make it with ./prepare quickstart"});
}

/// What a message quotes of a record does not grow with it.
TEST(Samples, LongLinesAreShortenedInMessages) {
  const Scratch scratch;
  const std::string much(1 << 20, 'x');
  const auto said = [&](const std::string& content) {
    const auto file = write_file(scratch / "a.jsonl", content);
    try {
      read_samples({file.string()});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const std::string& content :
       {"{\"question\": \"" + much, much, line({{"question", "Q"}, {"answer", much}}),
        line({{"question", "Q"}, {"answer", "x\n####" + much}}), line({{"question", {much}}}),
        line({{much, 1}}), line({{"question", "Q"}, {"execution", "x"}, {"answer", much}})}) {
    const std::string message = said(content);
    EXPECT_NE(message.find("a.jsonl:1"), std::string::npos) << message.substr(0, 1000);
    EXPECT_LT(message.size(), 1000u) << message.substr(0, 1000);
  }
}

TEST(Samples, APipeIsRefusedNotWaitedFor) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "a.jsonl").c_str(), 0600), 0);
  expect_user_error([&] { read_samples({(scratch / "a.jsonl").string()}); }, {"a.jsonl", "a pipe"});
}

}  // namespace
}  // namespace tern::data
