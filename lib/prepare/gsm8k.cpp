#include "prepare/gsm8k.hpp"

#include <ostream>
#include <unordered_set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "data/samples.hpp"
#include "prepare/detail/output_folder.hpp"
#include "prepare/detail/problem_files.hpp"
#include "problems/near_duplicates.hpp"
#include "problems/problem_template.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using problems::ProblemTemplate;

constexpr std::size_t repeats = 20;  // draws per variant, to find new ones
constexpr int largest_number = 999;  // that is a token, if there is room

std::vector<data::Sample> read(const fs::path& file) {
  if (!fs::exists(file))
    user_error("{} is missing: GSM8K's train.jsonl and test.jsonl belong there", file.string());
  return data::read_samples({file.string()}, data::PlanRule::none);
}

void write_line(std::ostream& out, const std::string& question, const std::string& answer) {
  out << json_text(nlohmann::ordered_json{{"question", question}, {"answer", answer}}) << '\n';
}

/// Writes different variants of the problem number `index`; returns how many.
std::size_t write_variants(std::ostream& out, const ProblemTemplate& problem, std::size_t index,
                           const Gsm8kOptions& options) {
  std::unordered_set<std::string> questions{problem.original().question};
  std::size_t made = 0;
  for (std::size_t i = 0; made < options.variants && i < repeats * options.variants; ++i) {
    Draw draw(options.seed, index, static_cast<std::uint32_t>(i));
    const auto texts = problem.draw(draw);
    if (!texts) break;  // after many tries
    if (!questions.insert(texts->question).second) continue;
    write_line(out, texts->question, texts->answer);
    ++made;
  }
  return made;
}

/// Writes again a problem that gets no variants, and would be rare compared with those that do.
void write_copies(std::ostream& out, const data::Sample& sample, const Gsm8kOptions& options) {
  for (std::size_t i = 1; i < options.copies; ++i)
    write_line(out, sample.question, sample.execution);
}

Gsm8kSummary write_problems(const Gsm8kOptions& options, std::ostream& out) {
  const std::vector<data::Sample> train = read(options.folder / "train.jsonl");
  std::vector<std::string> tested;
  for (data::Sample& sample : read(options.folder / "test.jsonl"))
    tested.push_back(std::move(sample.question));
  const problems::NearDuplicates near_test(tested);
  Gsm8kSummary summary;
  summary.problems = train.size();
  for (const data::Sample& sample : train) write_line(out, sample.question, sample.execution);
  for (std::size_t i = 0; i < train.size(); ++i) {
    ProblemTemplate problem;
    const problems::Untraced reason =
        ProblemTemplate::trace(train[i].question, train[i].execution, problem);
    if (reason != problems::Untraced::none) {
      ++summary.reasons[problems::name_of(reason)];
      write_copies(out, train[i], options);
      continue;
    }
    ++summary.traced;
    if (near_test.contains(train[i].question)) {
      ++summary.near_test;
      write_copies(out, train[i], options);
    } else {
      const std::size_t made = write_variants(out, problem, i, options);
      summary.variants += made;
      if (made == 0 && options.variants > 0) write_copies(out, train[i], options);
    }
  }
  return summary;
}

std::vector<data::Sample> without_notes(const fs::path& file) {
  return data::read_samples({file.string()}, data::PlanRule::skeleton, data::Notes::drop);
}

void write_chats(const fs::path& file, const std::vector<data::Sample>& samples) {
  detail::write_chats(file, samples, [](const data::Sample& sample) { return sample.execution; });
}

/// Trains a BPE on questions, plans and executions; each number counts once per problem, so that
/// even rare ones become tokens.
void train_bpe(const Gsm8kOptions& options, std::size_t problems,
               const std::vector<data::Sample>& samples, const fs::path& folder, Log& log) {
  std::vector<std::string_view> texts;
  for (const data::Sample& sample : samples)
    texts.insert(texts.end(), {sample.question, sample.plan, sample.execution});
  detail::train_bpe({options.vocabulary, largest_number, problems, options.threads},
                    std::move(texts), folder);
  const auto tokenizer = text::open_tokenizer(folder.string());
  const int split = detail::first_split_number(*tokenizer, largest_number);
  log.line("BPE of {} tokens; {}", tokenizer->vocabulary(),
           split < 0 ? fmt::format("all numbers to {} are tokens", largest_number)
                     : fmt::format("no room for all numbers to {}: {} is not a token",
                                   largest_number, split));
}

void write_for_models(const Gsm8kOptions& options, std::size_t problems, const fs::path& folder,
                      Log& log) {
  if (!options.chats && options.vocabulary == 0) return;
  const std::vector<data::Sample> train = without_notes(folder / "train.jsonl");
  if (options.vocabulary > 0) train_bpe(options, problems, train, folder, log);
  if (!options.chats) return;
  const std::vector<data::Sample> test = without_notes(options.folder / "test.jsonl");
  write_chats(folder / "train_chat.jsonl", train);
  write_chats(folder / "test_chat.jsonl", test);
  detail::write_requests(folder / "test_requests.jsonl", test);
}

nlohmann::ordered_json meta_of(const Gsm8kOptions& options, const Gsm8kSummary& summary) {
  return {{"problems", summary.problems},
          {"traced", summary.traced},
          {"near_test", summary.near_test},
          {"variants", summary.variants},
          {"not_traced", summary.reasons},
          {"variants_of_a_problem", options.variants},
          {"copies", options.copies},
          {"vocabulary", options.vocabulary},
          {"seed", options.seed}};
}

}  // namespace

Gsm8kSummary prepare_gsm8k(const Gsm8kOptions& options, Log& log) {
  if (options.output.empty()) user_error("no output folder is named; give --output data/NAME");
  detail::OutputFolder folder(options.output, options.force, {options.folder / "train.jsonl"});
  Gsm8kSummary summary;
  write_file(folder.path() / "train.jsonl",
             [&](std::ostream& out) { summary = write_problems(options, out); });
  write_for_models(options, summary.problems, folder.path(), log);
  folder.publish(meta_of(options, summary));
  log.line(
      "{} is ready: {} problems and {} variants of those {} ({:.1f}%) whose every number is traced",
      options.output.string(), summary.problems, summary.variants,
      summary.traced - summary.near_test,
      100.0 * static_cast<double>(summary.traced) / static_cast<double>(summary.problems));
  for (const auto& [reason, count] : summary.reasons)
    log.line("  not traced: {} {}", count, reason);
  log.line("  no variants: {} traced, but too much like a test problem", summary.near_test);
  return summary;
}

}  // namespace tern::prepare
