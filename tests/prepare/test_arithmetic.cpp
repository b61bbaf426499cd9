#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "data/samples.hpp"
#include "prepare/arithmetic.hpp"
#include "scratch.hpp"
#include "text/chat.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using test::expect_user_error;
using test::read_file;
using test::Scratch;

const ArithmeticProblems& problems() {
  static const ArithmeticProblems made = arithmetic_problems(20'000, 1'000, {1, 4}, 1);
  return made;
}

std::vector<problems::WordProblem> all_problems() {
  std::vector<problems::WordProblem> all = problems().train;
  all.insert(all.end(), problems().test.begin(), problems().test.end());
  return all;
}

/// `12+7=<<12+7=19>>19 apples.`
struct Step {
  int a = 0, b = 0, note_a = 0, note_b = 0, note = 0, result = 0;
  char sign = 0, note_sign = 0;
};

Step parse(const std::string& text) {
  Step s;
  int end = 0;
  const int read = std::sscanf(text.c_str(), "%d%c%d=<<%d%c%d=%d>>%d %*[a-z].%n", &s.a, &s.sign,
                               &s.b, &s.note_a, &s.note_sign, &s.note_b, &s.note, &s.result, &end);
  EXPECT_EQ(read, 8) << text;
  EXPECT_EQ(static_cast<std::size_t>(end), text.size()) << text;
  return s;
}

int computed(int a, char sign, int b) {
  switch (sign) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a % b == 0 ? a / b : -1;
    default:
      return -1;
  }
}

std::multiset<int> numbers_in(const std::string& text) {
  std::multiset<int> numbers;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 0;
    while (i + length < text.size() && std::isdigit(static_cast<unsigned char>(text[i + length])))
      ++length;
    if (length > 0) numbers.insert(std::stoi(text.substr(i, length)));
    i += std::max<std::size_t>(length, 1);
  }
  return numbers;
}

TEST(Arithmetic, AnswersFollowFromTheirNotes) {
  for (const problems::WordProblem& problem : all_problems()) {
    ASSERT_EQ(problem.steps.size(), problem.sub_questions.size());
    int last = 0;
    for (const std::string& text : problem.steps) {
      const Step s = parse(text);
      EXPECT_EQ(std::tuple(s.a, s.sign, s.b, s.note),
                std::tuple(s.note_a, s.note_sign, s.note_b, s.result));
      EXPECT_EQ(computed(s.a, s.sign, s.b), s.result) << text;
      EXPECT_TRUE(s.result >= 2 && s.result <= 99) << text;
      last = s.result;
    }
    EXPECT_EQ(problem.answer, last);
  }
}

TEST(Arithmetic, StepsUseTheQuestionsNumbersOrEarlierResults) {
  for (const problems::WordProblem& problem : all_problems()) {
    auto known = numbers_in(problem.question);
    std::multiset<int> given = known;
    for (const std::string& text : problem.steps) {
      const Step s = parse(text);
      EXPECT_TRUE(known.contains(s.a)) << problem.question << " | " << text;
      EXPECT_TRUE(known.contains(s.b)) << problem.question << " | " << text;
      if (const auto found = given.find(s.a); found != given.end()) given.erase(found);
      if (const auto found = given.find(s.b); found != given.end()) given.erase(found);
      known.insert(s.result);
    }
    EXPECT_TRUE(given.empty()) << problem.question << ": a number is of no use";
  }
}

TEST(Arithmetic, TrainAndTestAreDisjoint) {
  std::set<std::string> questions;
  for (const problems::WordProblem& problem : all_problems()) questions.insert(problem.question);
  EXPECT_EQ(problems().train.size(), 20'000u);
  EXPECT_EQ(problems().test.size(), 1'000u);
  EXPECT_EQ(questions.size(), 21'000u);
}

TEST(Arithmetic, LengthsAreInTheirRatio) {
  std::map<std::size_t, double> share;
  for (const problems::WordProblem& problem : problems().train)
    share[problem.steps.size()] += 1 / 2e4;
  for (std::size_t steps = 1; steps <= 4; ++steps)
    EXPECT_NEAR(share[steps], static_cast<double>(5 - steps) / 10, 0.015) << steps;
  const ArithmeticProblems two = arithmetic_problems(500, 10, {1, 2}, 1);
  for (const problems::WordProblem& problem : two.train) EXPECT_LE(problem.steps.size(), 2u);
  std::map<std::size_t, double> long_share;
  const ArithmeticProblems long_ones = arithmetic_problems(5'000, 10, {4, 8}, 1);
  for (const problems::WordProblem& problem : long_ones.train)
    long_share[problem.steps.size()] += 1 / 5e3;
  EXPECT_EQ(long_share.size(), 5u);
  for (const auto& [steps, share_of] : long_share) {
    EXPECT_TRUE(steps >= 4 && steps <= 8) << steps;
    EXPECT_NEAR(share_of, 0.2, 0.03) << steps;
  }
}

TEST(Arithmetic, SeedsGiveOtherProblems) {
  const auto lines = [](std::uint64_t seed) {
    std::string text;
    for (const problems::WordProblem& p : arithmetic_problems(50, 20, {1, 4}, seed).train)
      text += socratic_line(p) + '\n';
    return text;
  };
  EXPECT_EQ(lines(1), lines(1));
  EXPECT_NE(lines(1), lines(2));
}

/// Written down once: the same on every machine.
TEST(Arithmetic, TheFirstProblemsAreTheseOnes) {
  const auto& train = problems().train;
  EXPECT_EQ(gsm8k_line(train[1]),
            R"({"question":"Jack has 12 coins. He sells them for 3 dollars each. How many dolla)"
            R"(rs does Jack get?","answer":"12*3=<<12*3=36>>36 dollars.\n#### 36"})");
  EXPECT_EQ(socratic_line(train[1]),
            R"({"question":"Jack has 12 coins. He sells them for 3 dollars each. How many dolla)"
            R"(rs does Jack get?","answer":"How many dollars does Jack get? ** 12*3=<<12*3=36>>)"
            R"(36 dollars.\n#### 36"})");
  EXPECT_EQ(socratic_line(train[11]),
            R"({"question":"Tom has 14 stones. He loses 4. Mia has 3 fewer than Tom. How many s)"
            R"(tones does Mia have?","answer":"How many stones after losing some? ** 14-4=<<14-)"
            R"(4=10>>10 stones.\nHow many stones does Mia have? ** 10-3=<<10-3=7>>7 stones.\n##)"
            R"(## 7"})");
}

ArithmeticOptions small(const fs::path& output) {
  ArithmeticOptions options;
  options.output = output;
  options.problems = 1000;
  options.test_problems = 50;
  options.vocabulary = 500;
  return options;
}

TEST(Arithmetic, FilesAreThoseOfGsm8k) {
  const Scratch scratch;
  ArithmeticOptions options = small(scratch / "a");
  Log silent(false);
  const ArithmeticSummary made = prepare_arithmetic(options, silent);
  for (const char* name : {"train", "test"}) {
    const auto plain =
        data::read_samples({(options.output / (std::string(name) + ".jsonl")).string()});
    const auto socratic =
        data::read_samples({(options.output / (std::string(name) + "_socratic.jsonl")).string()});
    ASSERT_EQ(plain.size(), std::string(name) == "train" ? 1000u : 50u);
    ASSERT_EQ(plain.size(), socratic.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].question, socratic[i].question);
      EXPECT_EQ(plain[i].execution, socratic[i].execution);
      EXPECT_EQ(plain[i].answer, socratic[i].answer);
      EXPECT_TRUE(plain[i].plan.starts_with("_")) << plain[i].plan;
      EXPECT_TRUE(socratic[i].plan.starts_with("How many ")) << socratic[i].plan;
    }
  }
  const auto meta = nlohmann::json::parse(read_file(options.output / "meta.json"));
  EXPECT_EQ(meta["vocabulary"], 500);
  EXPECT_EQ(meta["end_of_text"], 499);
  EXPECT_EQ(meta["problems"], 1000);
  EXPECT_EQ(meta["longest_in_tokens"]["question"], made.question);

  options.output = scratch / "b";
  options.threads = 3;
  prepare_arithmetic(options, silent);
  for (const char* name : {"train.jsonl", "test_socratic.jsonl", "tokenizer.json"})
    EXPECT_TRUE(read_file(scratch / "a" / name) == read_file(scratch / "b" / name)) << name;
}

TEST(Arithmetic, ChatsAreTheProblems) {
  const Scratch scratch;
  ArithmeticOptions options = small(scratch / "plain");
  Log silent(false);
  prepare_arithmetic(options, silent);
  EXPECT_FALSE(fs::exists(scratch / "plain" / "train_chat.jsonl"));
  options.output = scratch / "chats";
  options.chats = true;
  prepare_arithmetic(options, silent);
  const auto file = [&](const std::string& name) {
    return std::vector{(options.output / (name + ".jsonl")).string()};
  };
  EXPECT_EQ(read_file(scratch / "plain" / "tokenizer.json"),
            read_file(scratch / "chats" / "tokenizer.json"));
  for (const std::string name : {"train", "test"}) {
    const auto problems =
        data::read_samples(file(name), data::PlanRule::skeleton, data::Notes::drop);
    const auto chats = text::read_conversations(file(name + "_chat"));
    const auto planned = text::read_conversations(file(name + "_plan_chat"));
    ASSERT_EQ(problems.size(), name == "train" ? 1000u : 50u);
    ASSERT_EQ(chats.size(), problems.size());
    ASSERT_EQ(planned.size(), problems.size());
    for (std::size_t i = 0; i < problems.size(); ++i)
      for (const auto& [chat, answer] :
           {std::pair(chats[i], problems[i].execution),
            std::pair(planned[i], problems[i].plan + "\n\n" + problems[i].execution)}) {
        ASSERT_EQ(chat.messages.size(), 2u);
        EXPECT_EQ(chat.messages[0].role, text::Role::user);
        EXPECT_EQ(chat.messages[0].content, problems[i].question);
        EXPECT_EQ(chat.messages[1].role, text::Role::assistant);
        EXPECT_EQ(chat.messages[1].content, answer);
      }
    if (name == "train") continue;
    std::istringstream requests(read_file(options.output / "test_requests.jsonl"));
    std::string line;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      ASSERT_TRUE(std::getline(requests, line));
      EXPECT_EQ(nlohmann::json::parse(line),
                (nlohmann::json{
                    {"text", problems[i].question}, {"id", i}, {"label", problems[i].answer}}));
    }
    EXPECT_FALSE(std::getline(requests, line));
  }
}

TEST(Arithmetic, NumbersAreSingleTokens) {
  const Scratch scratch;
  Log silent(false);
  prepare_arithmetic(small(scratch / "a"), silent);
  const auto tokenizer = text::open_tokenizer((scratch / "a").string());
  for (int number = 1; number <= 99; ++number) {
    const std::int32_t id = tokenizer->id(std::to_string(number));
    ASSERT_GE(id, 0) << number;
    for (const char* place : {"{}", " {} more", "{}+", "={}>>", ">>{} ", "\n#### {}"}) {
      std::vector<std::int32_t> tokens;
      tokenizer->encode(fmt::format(fmt::runtime(place), number), tokens);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), id), 1) << place << ' ' << number;
    }
  }
}

TEST(Arithmetic, TheQuickstartHasShortProblems) {
  const Scratch scratch;
  Log silent(false);
  ArithmeticOptions options;
  set_quickstart(options);
  EXPECT_EQ(options.output, "data/quickstart");
  options.output = scratch / "quickstart";
  set_quickstart(options);
  prepare_arithmetic(options, silent);
  const auto tokenizer = text::open_tokenizer(options.output.string());
  EXPECT_EQ(tokenizer->vocabulary(), 600u);
  const auto samples = data::read_samples({(options.output / "*_socratic.jsonl").string()});
  EXPECT_EQ(samples.size(), 41'000u);
  for (const data::Sample& sample : samples)
    EXPECT_LE(std::count(sample.execution.begin(), sample.execution.end(), '\n'), 2);
}

TEST(Arithmetic, MistakesAreNamed) {
  const Scratch scratch;
  Log silent(false);
  const auto fails = [&](const auto& set, std::initializer_list<std::string> parts) {
    ArithmeticOptions options = small(scratch / "out");
    set(options);
    expect_user_error([&] { prepare_arithmetic(options, silent); }, parts);
    EXPECT_FALSE(fs::exists(scratch / "out"));
    EXPECT_FALSE(fs::exists(scratch / ".out.partial"));
  };
  fails([](auto& o) { o.steps.most = 9; }, {"9 steps", "1 to 8"});
  fails([](auto& o) { o.steps.most = 0; }, {"0 steps"});
  fails([](auto& o) { o.steps.least = 5; }, {"5 to 4 steps", "--least-steps from 1 to 4"});
  fails([](auto& o) { o.problems = 0; }, {"0 training"});
  fails([](auto& o) { o.vocabulary = 300; }, {"vocabulary of 300", "--vocabulary"});
  fails([](auto& o) { o.vocabulary = 5000; }, {"5000", "only 619 tokens"});
  fails([](auto& o) { o.output = ""; }, {"--output"});
}

}  // namespace
}  // namespace tern::prepare
