/// Arithmetic word problems from templates: GSM8K's formats without a download, and small enough
/// that a tiny model learns to solve new ones within minutes.
///
///   Tom has 12 apples. He buys 7 more. Ann has 3 times as many. How many apples does Ann have?
///     How many apples after buying? ** 12+7=<<12+7=19>>19 apples.
///     How many apples does Ann have? ** 19*3=<<19*3=57>>57 apples.
///     #### 57
///
/// All numbers are integers from 2 to 99 and single tokens of the BPE trained with them, so that a
/// step is a lookup, without carries. Texts are identical on every machine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "problems/word_problem.hpp"

namespace tern::prepare {

struct ArithmeticProblems {
  std::vector<problems::WordProblem> train, test;
};

struct StepRange {
  std::size_t least = 1, most = 4;
};

/// Problems of `steps` steps (at most 8), drawn in the ratio 4 : 3 : 2 : 1 : 1 : ... Questions are
/// unique over train and test. Throws UserError if `steps` is not in 1 to 8, or if too few
/// different questions are found.
ArithmeticProblems arithmetic_problems(std::size_t train, std::size_t test, const StepRange& steps,
                                       std::uint64_t seed);

/// JSON lines {"question", "answer"} without the newline: GSM8K's main format, and its socratic
/// format with a sub-question before each step.
std::string gsm8k_line(const problems::WordProblem& problem);
std::string socratic_line(const problems::WordProblem& problem);

struct ArithmeticOptions {
  std::filesystem::path output;
  std::size_t problems = 20'000, test_problems = 1'000;
  StepRange steps;
  std::size_t vocabulary = 600;  // BPE: makes nearly every word of the templates a token
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  bool chats = false;  // also write conversations and requests
  bool force = false;  // replace an existing output folder
};

/// Tokens of the longest segments, end tokens included.
struct ArithmeticSummary {
  std::size_t question = 0, plan = 0, execution = 0, skeleton = 0;
};

/// Writes `output`/train.jsonl, test.jsonl, train_socratic.jsonl, test_socratic.jsonl, meta.json,
/// and tokenizer.json, a BPE trained on the training problems. With `chats` also the problems
/// without calculator notes as conversations, train_chat.jsonl and test_chat.jsonl, the same with
/// the skeleton of the execution before it, train_plan_chat.jsonl and test_plan_chat.jsonl, and
/// test_requests.jsonl, labeled with the answers. The folder is renamed into place when complete.
/// Throws UserError.
ArithmeticSummary prepare_arithmetic(const ArithmeticOptions& options, Log& log);

/// Options of the quickstart: problems of one or two steps, in data/quickstart unless `options`
/// name another output.
void set_quickstart(ArithmeticOptions& options);

}  // namespace tern::prepare
