// Plans that a model wrote: requests for them, and the problems with its answers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "answer/requests.hpp"
#include "data/samples.hpp"
#include "prepare/plans.hpp"
#include "scratch.hpp"

namespace tern::prepare {
namespace {

using nlohmann::json;
using test::expect_user_error;
using test::Scratch;

const char* problems =
    R"({"question": "Ann has 3 pens and buys 4. How many?", "answer": "3+4=<<3+4=7>>7 pens.\n#### 7"}
{"question": "Half of 48?", "answer": "48/2=<<48/2=24>>24.\n#### 24"}
{"question": "A pair costs $6. How much are ten?", "answer": "10*6=$<<10*6=60>>60.\n#### 60"}
)";

PlansSummary make(const Scratch& scratch, const std::string& output,
                  const std::string& answers = "") {
  PlansOptions options;
  options.input = scratch / "train.jsonl";
  options.output = scratch / output;
  if (!answers.empty()) options.answers = scratch / answers;
  options.force = true;
  Log silent(false);
  return prepare_plans(options, silent);
}

/// The answer to a request, as batch inference writes it.
std::string answer(const answer::ChatRequest& request, const std::string& plan) {
  return json{{"messages",
               {{{"role", "user"}, {"content", request.text}},
                {{"role", "assistant"}, {"content", plan}}}},
              {"id", json::parse(request.id.dump())}}
             .dump() +
         "\n";
}

std::vector<answer::ChatRequest> requests_in(const Scratch& scratch) {
  scratch.write("train.jsonl", problems);
  EXPECT_EQ(make(scratch, "requests").problems, 3u);
  return answer::read_requests(scratch / "requests/requests.jsonl");
}

TEST(Plans, RequestsHoldQuestionAndSolutionWithoutNotes) {
  const Scratch scratch;
  const auto requests = requests_in(scratch);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].text, "Problem: Half of 48?\n\nSolution:\n48/2=24.\n#### 24");
  EXPECT_EQ(requests[1].id, 1);
  const answer::PromptTemplate prompt(scratch / "requests/prompt.txt");
  const std::string filled = prompt.fill(requests[1].text);
  EXPECT_TRUE(filled.ends_with(requests[1].text)) << filled;
}

TEST(Plans, SamplesHaveThePlansThatDoNotSayTheAnswer) {
  const Scratch scratch;
  const auto requests = requests_in(scratch);
  scratch.write("answers.jsonl",
                answer(requests[2], "Multiply the price by ten to get $60.00, the cost.") +
                    answer(requests[0], "Add the pens. There were 17 at first."));
  const PlansSummary summary = make(scratch, "planned", "answers.jsonl");
  EXPECT_EQ(summary.problems, 3u);
  EXPECT_EQ(summary.planned, 1u);
  EXPECT_EQ(summary.telling, 1u);
  const auto read = [&](data::PlanRule rule) {
    return data::read_samples({(scratch / "planned/samples.jsonl").string()}, rule);
  };
  const auto given = read(data::PlanRule::data),
             original = data::read_samples({(scratch / "train.jsonl").string()});
  ASSERT_EQ(given.size(), 3u);
  EXPECT_EQ(given[0].plan, "Add the pens. There were 17 at first.");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(given[i].question, original[i].question);
    EXPECT_EQ(given[i].execution, original[i].execution);  // with its notes
    EXPECT_EQ(given[i].answer, original[i].answer);
    if (i > 0) {
      EXPECT_EQ(given[i].plan, original[i].plan);  // the skeleton
    }
  }
}

TEST(Plans, AnswersToOtherProblemsAreRefused) {
  const Scratch scratch;
  auto requests = requests_in(scratch);
  const auto refused = [&](const std::string& answers, const std::string& place,
                           const std::string& why) {
    scratch.write("answers.jsonl", answers);
    expect_user_error([&] { make(scratch, "planned", "answers.jsonl"); }, {place, why});
    EXPECT_FALSE(std::filesystem::exists(scratch / "planned"));
  };
  const std::string good = answer(requests[0], "Add.");
  refused(good + good, "answers.jsonl:2", "a second plan for problem 0");
  requests[1].id = 0;
  refused(good + answer(requests[1], "Add."), "answers.jsonl:2", "no answer to a request");
  requests[1].id = 3;
  refused(answer(requests[1], "Add."), "answers.jsonl:1", "give --input the file of problems");
  requests[1].id = "1";
  refused(answer(requests[1], "Add."), "answers.jsonl:1", "no answer to a request");
  refused("plan\n", "answers.jsonl:1", "");
  expect_user_error([&] { make(scratch, "planned", "missing.jsonl"); },
                    {"missing.jsonl", "pass --answers answers.jsonl of the run"});
}

}  // namespace
}  // namespace tern::prepare
