#include "campaign/tasks.hpp"

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/timer.hpp"
#include "campaign/data_set.hpp"
#include "campaign/evaluation.hpp"
#include "campaign/problems.hpp"
#include "campaign/run_directory.hpp"
#include "campaign/weights.hpp"
#include "campaign/writer.hpp"
#include "deck/rules.hpp"

namespace tern::campaign {
namespace {

/// The workload of a deck with its weights loaded.
template <class T>
struct Loaded {
  Loaded(const deck::Deck& deck, std::size_t bytes, const comm::Mesh& mesh, Log& log)
      : layout(plan::make_layout(deck, mesh.data().size())),
        arena(bytes),
        workload(deck, layout, mesh, arena) {
    workload.model.prepare(workload.context);
    if (workload.generator) workload.generator->prepare(workload.context);
    if (workload.sampler) workload.sampler->prepare(workload.context);
    load_weights(workload, deck.model, weights_source(deck), log);
  }
  plan::Layout layout;
  Arena arena;
  plan::Workload<T> workload;
};

}  // namespace

std::string weights_source(const deck::Deck& deck) {
  if (!deck.generation.checkpoint.empty()) return deck.generation.checkpoint;
  const bool own = deck.model.load.empty() || RunDirectory{deck.output.directory}.holds_a_run();
  return own ? deck.output.directory : deck.model.load;
}

deck::Deck of_one_sequence(deck::Deck deck) {
  deck.campaign.task = "generate";
  deck.batch.per_rank = deck.batch.global = 1;
  deck.batch.accumulation = 0;  // of training alone
  deck.parallel.data = 1;
  return deck;
}

template <class T>
int evaluate_weights(const deck::Deck& deck, const plan::Plan& plan, const comm::Mesh& mesh,
                     Log& log) {
  deck::Deck resolved = deck;
  resolved.batch.per_rank = plan.per_rank;
  resolved.batch.global = plan.global;
  const auto tokenizer = deck::holds_samples(deck.data) ? open_tokenizer(deck) : nullptr;
  check_shards(deck, deck.data.valid, mesh, log);
  const DataSet valid = open_data(deck, deck.data.valid, tokenizer.get());
  log.line("valid: {}", valid.summary);
  Loaded<T> loaded(resolved, plan.total_bytes, mesh, log);
  const Timer timer;
  const objective::Score result =
      *evaluate(loaded.workload, resolved, loaded.layout, *valid.source, mesh.data(), false);
  log.line("validation loss {:.4f}  perplexity {:.2f}  ({} tokens, {:.1f} s)", result.loss,
           std::exp(result.loss), result.tokens, timer.seconds());
  for (const auto& [name, value] : result.metrics)
    if (name.find('/') == name.rfind('/')) log.line("{} {:.4f}", name, value);
  if (!loaded.workload.sampler) return finished;
  const std::size_t problems = deck.evaluation.problems > 0
                                   ? static_cast<std::size_t>(deck.evaluation.problems)
                                   : valid.samples.size();
  const Accuracy accuracy =
      *solve(loaded.workload, resolved, valid.samples, problems, *tokenizer, mesh.data());
  log.line("{}{}", page(accuracy.shown), summary(accuracy));
  return finished;
}

template <class T>
void generate_text(const deck::Deck& deck, const plan::Plan& plan, const comm::Mesh& replica,
                   Log& log) {
  const deck::Deck one = of_one_sequence(deck);
  const auto tokenizer = open_tokenizer(deck);
  Loaded<T> loaded(one, plan.total_bytes, replica, log);
  const Timer timer;
  const std::string& prompt = deck.generation.prompt;
  const auto texts = loaded.workload.sampler
                         ? write_freely(loaded.workload, one, *tokenizer, prompt)
                         : write_samples(loaded.workload, one, *tokenizer, prompt);
  std::size_t bytes = 0;
  for (const std::string& text : texts) {
    log.line("---\n{}{}", prompt, text);
    bytes += text.size();
  }
  log.line("---\n{} samples, {} bytes, {:.2f} s", texts.size(), bytes, timer.seconds());
}

int export_model(const deck::Deck& deck, const std::string& directory, comm::Group& group,
                 Log& log) {
  const std::string& kind = deck.objective.kind;
  if (kind != "causal" && kind != "supervised")
    user_error(
        "--export: no model of Transformers predicts as &objective kind = '{}' does; read the "
        "weights from checkpoint.h5 in {}",
        kind, deck.output.directory);
  if (group.rank() == 0) {
    std::int64_t end_of_text = -1;
    try {
      end_of_text = open_tokenizer(deck)->end_of_text();
    } catch (const UserError& e) {
      log.warning("exported without a tokenizer: {}", e.what());
    }
    export_weights(deck, weights_source(deck), directory, end_of_text, log);
  }
  group.barrier();
  return finished;
}

template int evaluate_weights<float>(const deck::Deck&, const plan::Plan&, const comm::Mesh&, Log&);
template int evaluate_weights<bf16>(const deck::Deck&, const plan::Plan&, const comm::Mesh&, Log&);
template void generate_text<float>(const deck::Deck&, const plan::Plan&, const comm::Mesh&, Log&);
template void generate_text<bf16>(const deck::Deck&, const plan::Plan&, const comm::Mesh&, Log&);

}  // namespace tern::campaign
