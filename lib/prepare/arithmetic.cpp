#include "prepare/arithmetic.hpp"

#include <ostream>
#include <unordered_set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "data/samples.hpp"
#include "data/skeleton.hpp"
#include "prepare/detail/output_folder.hpp"
#include "prepare/detail/problem_files.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using problems::WordProblem;

constexpr int parts[] = {4, 3, 2, 1, 1, 1, 1, 1};  // ratio of problems with 1, 2, 3, ... steps
constexpr std::size_t max_problem_steps = std::size(parts);
constexpr std::size_t quickstart_steps = 2, quickstart_problems = 40'000;
constexpr int largest_number = 99;
constexpr std::size_t tries = 20;  // per requested problem, to find new ones
enum Series : std::uint64_t { train_series, test_series };

std::size_t draw_steps(const StepRange& range, Draw& draw) {
  int sum = 0;
  for (std::size_t i = range.least - 1; i < range.most; ++i) sum += parts[i];
  int at = draw.below(sum);
  std::size_t steps = range.least;
  for (; at >= parts[steps - 1]; ++steps) at -= parts[steps - 1];
  return steps;
}

std::vector<WordProblem> draw_problems(std::size_t count, const StepRange& steps,
                                       std::uint64_t seed, Series series,
                                       std::unordered_set<std::string>& questions) {
  std::vector<WordProblem> problems;
  for (std::size_t i = 0; problems.size() < count; ++i) {
    if (i == tries * count)
      user_error("only {} of {} different problems are found; ask for fewer", problems.size(),
                 count);
    Draw draw(seed, series, static_cast<std::uint32_t>(i));
    const std::size_t n = draw_steps(steps, draw);
    WordProblem problem = problems::draw_problem(n, draw);
    if (questions.insert(problem.question).second) problems.push_back(std::move(problem));
  }
  return problems;
}

std::string json_line(const WordProblem& problem, bool socratic) {
  std::string answer;
  for (std::size_t i = 0; i < problem.steps.size(); ++i) {
    if (socratic) answer += problem.sub_questions[i] + " ** ";
    answer += problem.steps[i] + '\n';
  }
  answer += fmt::format("#### {}", problem.answer);
  return json_text(nlohmann::ordered_json{{"question", problem.question}, {"answer", answer}});
}

void write_problems(const fs::path& folder, const std::string& name,
                    const std::vector<WordProblem>& problems) {
  write_file(folder / (name + ".jsonl"), [&](std::ostream& out) {
    for (const WordProblem& problem : problems) out << gsm8k_line(problem) << '\n';
  });
  write_file(folder / (name + "_socratic.jsonl"), [&](std::ostream& out) {
    for (const WordProblem& problem : problems) out << socratic_line(problem) << '\n';
  });
}

/// Conversations without calculator notes; `_plan_chat` has a plan before each execution.
void write_chats(const fs::path& folder, const std::string& name) {
  const auto samples = data::read_samples({(folder / (name + ".jsonl")).string()},
                                          data::PlanRule::skeleton, data::Notes::drop);
  detail::write_chats(folder / (name + "_chat.jsonl"), samples,
                      [](const data::Sample& sample) { return sample.execution; });
  detail::write_chats(
      folder / (name + "_plan_chat.jsonl"), samples,
      [](const data::Sample& sample) { return sample.plan + "\n\n" + sample.execution; });
  if (name == "test") detail::write_requests(folder / "test_requests.jsonl", samples);
}

/// All texts that a model is trained on.
std::vector<std::string> texts_of(const fs::path& folder) {
  std::vector<std::string> texts;
  for (const char* name : {"train.jsonl", "train_socratic.jsonl"})
    for (data::Sample& sample : data::read_samples({(folder / name).string()})) {
      texts.push_back(std::move(sample.question));
      texts.push_back(std::move(sample.plan));
      texts.push_back(std::move(sample.execution));
    }
  return texts;
}

void train_bpe(const ArithmeticOptions& options, const fs::path& folder) {
  const std::vector<std::string> texts = texts_of(folder);
  detail::train_bpe({options.vocabulary, largest_number, options.problems, options.threads},
                    {texts.begin(), texts.end()}, folder);
}

std::unique_ptr<text::Tokenizer> open_checked(const fs::path& folder, std::size_t vocabulary) {
  auto tokenizer = text::open_tokenizer(folder.string());
  if (const int number = detail::first_split_number(*tokenizer, largest_number); number >= 0)
    user_error("a vocabulary of {} has no room for the number {}; give a larger --vocabulary",
               vocabulary, number);
  return tokenizer;
}

ArithmeticSummary longest_segments(const fs::path& folder, const text::Tokenizer& tokenizer) {
  ArithmeticSummary longest;
  const auto count = [&](const std::string& text, std::size_t& most) {
    std::vector<std::int32_t> tokens;
    tokenizer.encode(text, tokens);
    most = std::max(most, tokens.size() + 1);
  };
  for (const data::Sample& sample : data::read_samples({(folder / "*_socratic.jsonl").string()})) {
    count(sample.question, longest.question);
    count(sample.plan, longest.plan);
    count(sample.execution, longest.execution);
    count(data::skeleton(sample.execution), longest.skeleton);
  }
  return longest;
}

nlohmann::ordered_json meta_of(const ArithmeticOptions& options, const text::Tokenizer& tokenizer,
                               const ArithmeticSummary& longest) {
  return {{"tokenizer", options.output.string()},
          {"vocabulary", tokenizer.vocabulary()},
          {"end_of_text", tokenizer.end_of_text()},
          {"problems", options.problems},
          {"test_problems", options.test_problems},
          {"least_steps", options.steps.least},
          {"steps", options.steps.most},
          {"seed", options.seed},
          {"longest_in_tokens",
           {{"question", longest.question},
            {"plan", longest.plan},
            {"execution", longest.execution},
            {"skeleton", longest.skeleton}}}};
}

}  // namespace

ArithmeticProblems arithmetic_problems(std::size_t train, std::size_t test, const StepRange& steps,
                                       std::uint64_t seed) {
  if (steps.most < 1 || steps.most > max_problem_steps)
    user_error("problems of up to {} steps are not made; give --steps from 1 to {}", steps.most,
               max_problem_steps);
  if (steps.least < 1 || steps.least > steps.most)
    user_error("problems of {} to {} steps are not made; give --least-steps from 1 to {}",
               steps.least, steps.most, steps.most);
  if (train == 0 || test == 0)
    user_error("{} training and {} test problems: at least one of either is needed", train, test);
  std::unordered_set<std::string> questions;
  ArithmeticProblems problems;
  problems.test = draw_problems(test, steps, seed, test_series, questions);
  problems.train = draw_problems(train, steps, seed, train_series, questions);
  return problems;
}

std::string gsm8k_line(const WordProblem& problem) { return json_line(problem, false); }
std::string socratic_line(const WordProblem& problem) { return json_line(problem, true); }

ArithmeticSummary prepare_arithmetic(const ArithmeticOptions& options, Log& log) {
  if (options.output.empty()) user_error("no output folder is named; give --output data/NAME");
  const ArithmeticProblems problems =
      arithmetic_problems(options.problems, options.test_problems, options.steps, options.seed);
  detail::OutputFolder folder(options.output, options.force);
  write_problems(folder.path(), "train", problems.train);
  write_problems(folder.path(), "test", problems.test);
  if (options.chats) {
    write_chats(folder.path(), "train");
    write_chats(folder.path(), "test");
  }
  train_bpe(options, folder.path());
  const auto tokenizer = open_checked(folder.path(), options.vocabulary);
  const ArithmeticSummary longest = longest_segments(folder.path(), *tokenizer);
  folder.publish(meta_of(options, *tokenizer, longest));
  log.line(
      "{} is ready: {} + {} problems; vocabulary {}; longest question {} tokens, plan {} "
      "(skeleton {}), execution {}",
      options.output.string(), options.problems, options.test_problems, tokenizer->vocabulary(),
      longest.question, longest.plan, longest.skeleton, longest.execution);
  return longest;
}

void set_quickstart(ArithmeticOptions& options) {
  options.steps.most = quickstart_steps;
  options.problems = quickstart_problems;
  if (options.output.empty()) options.output = "data/quickstart";
}

}  // namespace tern::prepare
