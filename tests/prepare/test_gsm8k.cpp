// Variants of word problems: what is traced, what is left alone, and that every calculation holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "data/samples.hpp"
#include "prepare/gsm8k.hpp"
#include "problems/near_duplicates.hpp"
#include "problems/problem_template.hpp"
#include "scratch.hpp"
#include "text/chat.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using problems::Exact, problems::ProblemTemplate, problems::Untraced;
using test::expect_user_error;
using test::read_file;
using test::Scratch;

using Texts = ProblemTemplate::Texts;

const Texts clips{
    "Nora sold 48 clips in April, and then she sold half as many clips in May. How many clips did "
    "Nora sell?",
    "Nora sold 48/2 = <<48/2=24>>24 clips in May.\nNora sold 48+24 = <<48+24=72>>72 clips.\n#### "
    "72"};

ProblemTemplate traced(const Texts& texts) {
  ProblemTemplate problem;
  EXPECT_EQ(ProblemTemplate::trace(texts.question, texts.answer, problem), Untraced::none)
      << texts.question;
  return problem;
}

Untraced reason(const std::string& question, const std::string& answer) {
  ProblemTemplate problem;
  return ProblemTemplate::trace(question, answer, problem);
}

/// `a*b+c` from left to right in doubles, products first: no parentheses.
double computed(const std::string& expression) {
  std::smatch m;
  if (std::regex_match(expression, m, std::regex(R"((.*[^*/+-])([+-])([^+-]*))")))
    return m[2] == "+" ? computed(m[1]) + computed(m[3]) : computed(m[1]) - computed(m[3]);
  if (std::regex_match(expression, m, std::regex(R"((.*)([*/])([^*/]*))")))
    return m[2] == "*" ? computed(m[1]) * computed(m[3]) : computed(m[1]) / computed(m[3]);
  return std::stod(expression);
}

/// Recomputes every note; returns the final number.
double expect_sound(const std::string& answer) {
  const std::regex note(R"(<<([^=]*)=([\d.]+)>>([\d,.]*\d)?)");
  double last = -1;
  for (auto at = std::sregex_iterator(answer.begin(), answer.end(), note);
       at != std::sregex_iterator(); ++at) {
    last = std::stod((*at)[2]);
    EXPECT_NEAR(computed((*at)[1]), last, 1e-9) << answer;
    std::string repeated = (*at)[3];
    std::erase(repeated, ',');
    if (!repeated.empty()) {
      EXPECT_EQ(std::stod(repeated), last) << answer;
    }
  }
  std::string end = answer.substr(answer.rfind("#### ") + 5);
  std::erase(end, ',');
  EXPECT_EQ(std::stod(end), last) << answer;
  return last;
}

TEST(ExactNumber, ComputesAndWrites) {
  EXPECT_EQ((Exact::parse("1,250.50") - Exact(1)).text(true), "1,249.5");
  EXPECT_EQ(Exact::parse(".5"), Exact(1, 2));
  EXPECT_EQ((Exact(1) / Exact(8)).text(), "0.125");
  EXPECT_EQ((Exact(0) - Exact::parse("0.05")).text(), "-0.05");
  EXPECT_EQ(Exact(3, 2).text(false, 2), "1.50");
  EXPECT_EQ(Exact(1234567).text(true), "1,234,567");
  EXPECT_FALSE((Exact(1) / Exact(3)).decimals());
  EXPECT_FALSE((Exact(1) / Exact(0)).valid());
  EXPECT_FALSE((Exact(1) / Exact(0) * Exact(0)).valid());
  EXPECT_FALSE((Exact(1'000'000'000) * Exact(1'000'000'000)).valid());
  EXPECT_LT(Exact(1, 3), Exact(1, 2));
}

TEST(ProblemTemplate, KeepsItsTextsWithItsOwnNumbers) {
  for (const Texts& texts :
       {clips,
        Texts{"A shop has 1,200 pens at $1.50 each and sells 25% of them. How much does it earn?",
              "It sells 25/100*1,200 = <<25/100*1200=300>>300 pens.\nIt earns 300 x $1.50 = "
              "$<<300*1.50=450>>450.\n#### 450"},
        Texts{"Each of 3 boxes weighs .5 kg on the 4th day. What do they weigh?",
              "They weigh 3*.5 = <<3*.5=1.5>>1.5 kg.\n#### 1.5"}}) {
    const Texts same = traced(texts).original();
    EXPECT_EQ(same.question, texts.question);
    EXPECT_EQ(same.answer, texts.answer);
  }
}

TEST(ProblemTemplate, DrawsOtherNumbersAndComputesAnew) {
  const ProblemTemplate problem = traced(clips);
  EXPECT_EQ(problem.variables(), 1u);
  std::set<std::string> questions;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Draw draw(1, 0, i);
    const auto texts = problem.draw(draw);
    ASSERT_TRUE(texts);
    questions.insert(texts->question);
    const double sold = std::stod(texts->question.substr(10));
    EXPECT_TRUE(sold >= 24 && sold <= 96 && std::fmod(sold, 2) == 0) << texts->question;
    EXPECT_EQ(expect_sound(texts->answer), 1.5 * sold);
  }
  EXPECT_GT(questions.size(), 25u);
}

TEST(ProblemTemplate, KeepsStyleKindAndSize) {
  const ProblemTemplate problem = traced(
      {"On the 3rd of May 2,400 people paid $7.50 each, and 40% of them came twice. How much was "
       "paid at the second visit?",
       "Of them 2,400*40/100 = <<2400*40/100=960>>960 came again.\nThey paid 960*$7.50 = "
       "$<<960*7.50=7200>>7,200.\n#### 7,200"});
  for (std::uint32_t i = 0; i < 100; ++i) {
    Draw draw(2, 0, i);
    const auto texts = problem.draw(draw);
    ASSERT_TRUE(texts);
    EXPECT_TRUE(std::regex_search(
        texts->question,
        std::regex(R"(3rd of May (\d,)?\d00 people paid \$\d+\.\d\d each, and [1-9]?\d% of)")))
        << texts->question;
    expect_sound(texts->answer);
  }
}

TEST(ProblemTemplate, RefusesWhatItCannotTrace) {
  const std::string two = "Ann has 5 pens and buys 8. How many has she?";
  EXPECT_EQ(reason(two, "She has 5+8=<<5+8=13>>13.\n#### 13"), Untraced::none);
  EXPECT_EQ(reason(two, "She has 13.\n#### 13"), Untraced::no_calculation);
  EXPECT_EQ(reason(two, "She has 5+8=<<5+8=13>>13.\nThat is 13-8=5.\n#### 13"),
            Untraced::no_calculation);
  EXPECT_EQ(reason(two, "She has 5+8=<<5+8=13>>13.\n#### 8"), Untraced::no_calculation);
  EXPECT_EQ(reason(two, "She has <<5+8=14>>14.\n#### 14"), Untraced::expression);
  EXPECT_EQ(reason(two, "She has <<5+y=13>>13.\n#### 13"), Untraced::expression);
  EXPECT_EQ(reason(two, "She has <<5+9=14>>14.\n#### 14"), Untraced::unknown);
  EXPECT_EQ(reason(two, "After 17 days she has <<5+8=13>>13.\n#### 13"), Untraced::unknown);
  EXPECT_EQ(reason("Ann has 12 pens and buys 60. How many?", "<<12+60=72>>72.\n#### 72"),
            Untraced::fixed);
  EXPECT_EQ(reason("A square has sides of 4 m. What is its area?",
                   "It is sixteen: <<4*4=16>>16.\n#### 16"),
            Untraced::ambiguous);
  EXPECT_EQ(reason("Ann has 20 figs, and buys four, for her six friends. How many get they each?",
                   "She has 20+4=<<20+4=24>>24 figs.\nEach gets 24/6=<<24/6=4>>4.\n#### 4"),
            Untraced::rigid);
}

TEST(ProblemTemplate, LeavesWordsConstantsAndWhatIsUnusedAlone) {
  const ProblemTemplate problem =
      traced({"In 14 weeks three teams of 9 play 35 games at 5:30. How many days do 9 wait?",
              "They wait 14 weeks * 7 days = <<14*7=98>>98 days.\n#### 98"});
  EXPECT_EQ(problem.variables(), 1u);
  Draw draw(3, 0, 0);
  const auto texts = problem.draw(draw);
  ASSERT_TRUE(texts);
  EXPECT_TRUE(std::regex_match(
      texts->question,
      std::regex(
          R"(In \d+ weeks three teams of 9 play 35 games at 5:30\. How many days do 9 wait\?)")))
      << texts->question;
  EXPECT_NE(texts->answer.find("*7="), std::string::npos) << texts->answer;
}

TEST(NearDuplicates, NumbersAndCapitalsDoNotMatter) {
  const problems::NearDuplicates set({clips.question, "Short one"});
  std::string other = clips.question;
  other.replace(other.find("48"), 2, "1,096");
  EXPECT_TRUE(set.contains(other));
  EXPECT_TRUE(set.contains("short ONE"));
  EXPECT_FALSE(
      set.contains("Nora sold 48 clips in April. How many pens does her brother have left?"));
}

void write_lines(const fs::path& file, const std::vector<Texts>& problems) {
  std::ofstream out(file);
  for (const Texts& p : problems)
    out << nlohmann::json{{"question", p.question}, {"answer", p.answer}}.dump() << '\n';
}

TEST(Gsm8k, WritesProblemsThenVariantsAndSparesTheTest) {
  const Scratch scratch;
  const Texts bus{"A bus has 36 seats in 9 rows. How many seats are in a row?",
                  "A row has 36/9 = <<36/9=4>>4 seats.\n#### 4"};
  const Texts odd{"Ann has pens. How many?", "She has 13.\n#### 13"};
  write_lines(scratch / "train.jsonl", {clips, bus, odd});
  Texts tested = bus;
  tested.question.replace(tested.question.find("36"), 2, "54");
  write_lines(scratch / "test.jsonl", {tested});
  Gsm8kOptions options;
  options.folder = scratch;
  options.output = scratch / "variants";
  options.variants = 8;
  Log silent(false);
  const Gsm8kSummary summary = prepare_gsm8k(options, silent);
  EXPECT_EQ(summary.problems, 3u);
  EXPECT_EQ(summary.traced, 2u);
  EXPECT_EQ(summary.near_test, 1u);
  EXPECT_EQ(summary.variants, 8u);
  EXPECT_EQ(summary.reasons.at(problems::name_of(Untraced::no_calculation)), 1u);
  const std::string text = read_file(options.output / "train.jsonl");
  std::istringstream lines(text);
  std::set<std::string> questions;
  std::string line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_TRUE(questions.insert(record.at("question")).second) << line;
    if (i >= 3) expect_sound(record.at("answer"));
  }
  EXPECT_EQ(questions.size(), 11u);
  expect_user_error([&] { prepare_gsm8k(options, silent); }, {"variants", "--force"});
  options.force = true;
  prepare_gsm8k(options, silent);
  EXPECT_EQ(read_file(options.output / "train.jsonl"), text);
  options.variants = 0;
  options.copies = 3;
  EXPECT_EQ(prepare_gsm8k(options, silent).variants, 0u);
  const auto repeated = data::read_samples({(options.output / "train.jsonl").string()});
  EXPECT_EQ(repeated.size(), 3u + 2u * 2u);  // no variants of two: the bus is near the test
  EXPECT_EQ(std::count(repeated.begin(), repeated.end(), repeated[2]), 3);
  EXPECT_EQ(std::count(repeated.begin(), repeated.end(), repeated[0]), 1);
  options.variants = 8;
  options.copies = 1;
  options.seed = 2;
  prepare_gsm8k(options, silent);
  EXPECT_NE(read_file(options.output / "train.jsonl"), text);
  options.folder = scratch / "nowhere";
  expect_user_error([&] { prepare_gsm8k(options, silent); },
                    {"nowhere/train.jsonl", "belong there"});
}

std::vector<data::Sample> samples_of(const fs::path& file) {
  return data::read_samples({file.string()}, data::PlanRule::skeleton, data::Notes::drop);
}

void expect_chats(const fs::path& file, const std::vector<data::Sample>& samples) {
  const auto chats = text::read_conversations({file.string()});
  ASSERT_EQ(chats.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ(chats[i].messages.size(), 2u);
    EXPECT_EQ(chats[i].messages[0].content, samples[i].question);
    EXPECT_EQ(chats[i].messages[1].content, samples[i].execution);
  }
}

TEST(Gsm8k, ChatsRequestsAndBpeAreOfTheProblems) {
  const Scratch scratch;
  const Texts odd{"Ann has pens. How many?", "She has 13.\n#### 13"};
  write_lines(scratch / "train.jsonl", {clips, odd, odd, odd, odd});
  write_lines(scratch / "test.jsonl", {{"A zebra xylophone costs $1,250.50. What do 2 cost?",
                                        "2*1,250.50 = $<<2*1250.5=2501>>2,501.\n#### 2,501.00"}});
  Gsm8kOptions options;
  options.folder = scratch;
  options.output = scratch / "made";
  Log silent(false);
  prepare_gsm8k(options, silent);
  for (const char* name : {"train_chat.jsonl", "test_requests.jsonl", "tokenizer.json"})
    EXPECT_FALSE(fs::exists(options.output / name)) << name;
  options.force = options.chats = true;
  options.vocabulary = 1310;
  prepare_gsm8k(options, silent);
  const auto train = samples_of(options.output / "train.jsonl");
  EXPECT_EQ(train.size(), 25u);
  expect_chats(options.output / "train_chat.jsonl", train);
  expect_chats(options.output / "test_chat.jsonl", samples_of(scratch / "test.jsonl"));
  EXPECT_EQ(train[0].execution,
            "Nora sold 48/2 = 24 clips in May.\nNora sold 48+24 = 72 clips.\n#### 72");
  EXPECT_EQ(nlohmann::json::parse(read_file(options.output / "test_requests.jsonl")),
            (nlohmann::json{{"text", "A zebra xylophone costs $1,250.50. What do 2 cost?"},
                            {"id", 0},
                            {"label", "2501"}}));
  const auto tokenizer = text::open_tokenizer(options.output.string());
  EXPECT_EQ(tokenizer->vocabulary(), 1310u);
  for (int number = 0; number <= 999; ++number)
    EXPECT_GE(tokenizer->id(std::to_string(number)), 0) << number;
  EXPECT_GE(tokenizer->id(" clips"), 0);
  EXPECT_LT(tokenizer->id(" zebra"), 0);  // the test problems are not learned from
}

}  // namespace
}  // namespace tern::prepare
