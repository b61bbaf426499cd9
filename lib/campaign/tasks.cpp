#include "campaign/tasks.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "answer/interval.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/timer.hpp"
#include "base/version.hpp"
#include "campaign/data_set.hpp"
#include "campaign/evaluation.hpp"
#include "campaign/problems.hpp"
#include "campaign/writer.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/agreement.hpp"
#include "comm/text.hpp"
#include "comm/waits.hpp"
#include "deck/rules.hpp"
#include "job/exit_code.hpp"
#include "job/run_directory.hpp"
#include "objective/kind.hpp"
#include "report/compared_run.hpp"
#include "text/deck_tokenizer.hpp"
#include "weights/weights.hpp"
#include "words/numbers.hpp"

namespace tern::campaign {
namespace {

/// The planned workload with its weights loaded.
template <class T>
struct Loaded {
  Loaded(const plan::Plan& plan, const comm::Mesh& mesh, Log& log)
      : arena(plan.total_bytes), workload(plan.deck, plan.layout, mesh, arena) {
    workload.prepare(log);
    const comm::LongWait files;
    weights::load_weights(workload.context, workload.tree, plan.deck.model, workload.parameters,
                          weights::weights_source(plan.deck, &log), log);
    mesh.world().barrier();
  }
  Arena arena;
  workload::Workload<T> workload;
};

/// Shows what is done; never asks to stop.
std::function<bool(std::size_t, std::size_t)> progress(Log& log, const char* what,
                                                       const char* units) {
  return [&log, what, units](std::size_t done, std::size_t all) {
    log.long_progress("{}: {} of {} {} done", what, done, all, units);
    return false;
  };
}

/// Contents of evaluation.json for a loss.
nlohmann::ordered_json record_of(const deck::Deck& deck, const objective::Score& score,
                                 double seconds) {
  nlohmann::ordered_json record = {{"name", deck.campaign.name},
                                   {"weights", weights::weights_source(deck)},
                                   {"valid", deck.data.valid},
                                   {"loss", score.loss},
                                   {"perplexity", std::exp(score.loss)},
                                   {"tokens", score.tokens},
                                   {"seconds", seconds}};
  for (const auto& [name, value] : score.metrics) record["metrics"][name] = value;
  record["made_by"] = fmt::format("tern {} ({})", version(), commit());
  return record;
}

void add(nlohmann::ordered_json& record, const Accuracy& a) {
  record["problems"] = a.problems;
  record["correct"] = a.correct;
  record["well_formed"] = a.well_formed;
  answer::add_fraction(record, "exact_match", a.correct, a.problems);
  record["sampling"] = a.sampling.to_json();
}

/// Solutions of all ranks as JSON lines, in the order of the problems. Collective.
std::string lines_of(const std::vector<Solution>& own, comm::Group& group) {
  std::string mine, all;
  for (const Solution& s : own)
    mine += json_text(nlohmann::ordered_json{{"question", s.question},
                                             {"plan", s.plan},
                                             {"execution", s.execution},
                                             {"expected", s.expected},
                                             {"well_formed", s.well_formed},
                                             {"correct", s.correct}},
                      -1, InvalidUtf8::replaced) +
            '\n';
  for (int rank = 0; rank < group.size(); ++rank) all += comm::broadcast_text(mine, group, rank);
  return all;
}

/// Writes evaluation.json and, if problems were solved, predictions.jsonl to the run directory,
/// each renamed into place. Collective.
void write_record(const deck::Deck& deck, const nlohmann::ordered_json& record,
                  const std::string& predictions, comm::Group& group) {
  const auto write = [](const std::filesystem::path& path, const std::string& text) {
    if (!replace_file(path, text))
      user_error("{}: cannot be written: {}; check &output directory", path.string(),
                 std::strerror(errno));
  };
  if (group.rank() == 0) {
    const std::filesystem::path directory = deck.output.directory;
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!predictions.empty()) write(directory / "predictions.jsonl", predictions);
    write(directory / "evaluation.json", json_text(record, 2, InvalidUtf8::replaced) + '\n');
  }
  group.barrier();
}

}  // namespace

deck::Deck of_one_sequence(deck::Deck deck) {
  deck.campaign.task = "generate";
  deck.batch.per_rank = deck.batch.global = 1;
  deck.batch.accumulation = 0;  // training only
  deck.batch.unit = deck::Batch().unit;
  deck.parallel.data = 1;
  return deck;
}

template <class T>
int evaluate_weights(const plan::Plan& plan, const comm::Mesh& mesh, Log& log) {
  const deck::Deck& deck = plan.deck;
  std::unique_ptr<text::Tokenizer> tokenizer;
  data::DataSet valid;
  check_shards(deck, deck.data.valid, mesh, log);
  comm::together([&] {
    if (deck::holds_samples(deck.data)) tokenizer = text::open_tokenizer(deck);
    valid = objective::open_data(deck, deck.data.valid, tokenizer.get());
  });
  log.line("valid: {}", valid.summary);
  Loaded<T> loaded(plan, mesh, log);
  const Timer timer;
  const objective::Score result =
      *evaluate(loaded.workload, deck, plan.layout, *valid.source, mesh.data(), false,
                progress(log, "evaluation", "micro-batches"));
  if (!std::isfinite(result.loss))
    user_error("the validation loss is {}: the weights of {} are not finite, or their run diverged",
               result.loss, weights::weights_source(deck));
  log.result("validation loss {:.4f}  perplexity {:.2f}  ({} tokens, {:.1f} s)", result.loss,
             std::exp(result.loss), grouped(result.tokens), timer.seconds());
  for (const auto& [name, value] : result.metrics)
    if (name.find('/') == name.rfind('/')) log.result("{} {:.4f}", name, value);
  if (!deck.evaluation.compare_with.empty() && mesh.world().rank() == 0)
    log.result("{}", report::compared_text(deck.evaluation.compare_with, result.loss));
  nlohmann::ordered_json record = record_of(deck, result, timer.seconds());
  if (!loaded.workload.sampler) {
    write_record(deck, record, "", mesh.world());
    return job::finished;
  }
  const std::size_t problems = deck.evaluation.problems > 0
                                   ? static_cast<std::size_t>(deck.evaluation.problems)
                                   : valid.problems.size();
  const Accuracy accuracy = *solve(loaded.workload, deck, valid.problems, problems, *tokenizer,
                                   mesh.data(), progress(log, "solving", "problems"));
  log.result("{}{}", page(accuracy.shown), summary(accuracy));
  add(record, accuracy);
  write_record(deck, record, lines_of(accuracy.solved, mesh.data()), mesh.world());
  return job::finished;
}

template <class T>
void generate_text(const plan::Plan& plan, const comm::Mesh& replica, Log& log) {
  const deck::Deck& deck = plan.deck;
  const auto tokenizer = text::open_tokenizer(deck);
  Loaded<T> loaded(plan, replica, log);
  const Timer timer;
  const std::string& prompt = deck.generation.prompt;
  const auto texts =
      loaded.workload.sampler
          ? write_freely(loaded.workload, deck, *tokenizer, prompt)
          : write_samples(loaded.workload, deck, *tokenizer, prompt, [&](std::size_t tokens) {
              log.long_progress("writing: {} of at most {} tokens", tokens,
                                deck.generation.max_tokens);
            });
  std::size_t bytes = 0;
  for (const Continuation& text : texts) {
    log.result("---\n{}{}{}", prompt, text.text, note(text, deck));
    bytes += text.text.size();
  }
  log.result("---\n{}, {}, {:.2f} s", counted(static_cast<std::int64_t>(texts.size()), "sample"),
             counted(static_cast<std::int64_t>(bytes), "byte"), timer.seconds());
}

template int evaluate_weights<float>(const plan::Plan&, const comm::Mesh&, Log&);
template int evaluate_weights<bf16>(const plan::Plan&, const comm::Mesh&, Log&);
template int evaluate_weights<fp16>(const plan::Plan&, const comm::Mesh&, Log&);
template void generate_text<float>(const plan::Plan&, const comm::Mesh&, Log&);
template void generate_text<bf16>(const plan::Plan&, const comm::Mesh&, Log&);
template void generate_text<fp16>(const plan::Plan&, const comm::Mesh&, Log&);

}  // namespace tern::campaign
