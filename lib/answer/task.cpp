/// Task of answering a file: plan, weights, engine, answers, evaluation.
#include "answer/answer_scores.hpp"
#include "answer/batch_inference.hpp"
#include "answer/dry_run.hpp"
#include "base/error.hpp"
#include "base/timer.hpp"
#include "comm/text.hpp"
#include "comm/waits.hpp"
#include "deck/choices.hpp"
#include "job/exit_code.hpp"
#include "job/interrupt.hpp"
#include "job/options.hpp"
#include "job/run_directory.hpp"
#include "job/run_record.hpp"
#include "plan/serving.hpp"
#include "text/deck_tokenizer.hpp"
#include "weights/identity.hpp"
#include "weights/weights.hpp"
#include "workload/serving.hpp"

namespace tern::answer {
namespace {

constexpr double margin_seconds = 20;  // left of a job's time, to finish a pass and exit

template <class T>
class EngineResponder final : public AnyEngine {
 public:
  EngineResponder(const deck::Deck& deck, const plan::ServingPlan& plan,
                  const generate::EngineOptions& options, const comm::Mesh& mesh, Log& log)
      : arena_(plan.total_bytes), serving_(deck, options, mesh, arena_) {
    const comm::LongWait files;
    weights::load_weights(serving_.context, serving_.tree, deck.model, serving_.parameters,
                          weights::weights_source(deck, &log), log);
    mesh.world().barrier();
    serving_.engine.prepare(serving_.context);
    serving_.engine.round_weights(serving_.context);
  }
  void submit(generate::Request request) override { serving_.engine.submit(std::move(request)); }
  bool busy() const override { return serving_.engine.busy(); }
  std::vector<generate::Answer> step(const std::function<void()>& meanwhile) override {
    return serving_.engine.step(serving_.context, meanwhile);
  }
  generate::Stats stats() const override { return serving_.engine.stats(); }

 private:
  Arena arena_;
  workload::Serving<T> serving_;
};

/// Answers are made to be read or learned: none is a mistake, except in an evaluation, which
/// measures that.
void require_good(const deck::Deck& deck, const detail::AnswerSummary& summary, Log& log) {
  if (summary.good > 0) return;
  const std::string text = fmt::format(
      "none of the {} answers is good: {}; {} has the reason for each", summary.requests,
      detail::rejects_in_words(summary), detail::AnswerFiles(deck).rejects().string());
  if (deck::task_of(deck) == deck::Task::evaluate)
    log.warning("{}", text);
  else
    user_error(
        "{}. Fix the common cause, such as &generation pattern, stop, max_tokens or the chat "
        "template, and pass --fresh to answer again",
        text);
}

void judge_and_compare(const deck::Deck& deck, const BatchInference& inference,
                       const BatchInference::Done& done, Log& log) {
  const AnswerScores own =
      judge(inference.requests(), done.records, done.summary, deck.evaluation.reference);
  write_evaluation(own, deck.output.directory);
  std::vector<AnswerScores> rows;
  for (const std::string& directory : deck.evaluation.compare_with)
    rows.push_back(read_evaluation(directory));
  rows.push_back(own);
  log.result("{}", scores_table(rows));
}

}  // namespace

template <class T>
int answer_file(const deck::Deck& deck, const job::Options& options, const comm::Mesh& mesh,
                const comm::Session& session, Log& log) {
  comm::Group& group = mesh.world();
  const generate::EngineOptions wanted = workload::engine_options(deck);
  if (options.dry_run) {
    log.result("{}", bulk_plan(deck, wanted, mesh, options, log));
    return job::finished;
  }
  const plan::ServingPlan plan = plan::plan_serving(deck, wanted, mesh);
  const auto tokenizer = text::open_tokenizer(deck);
  const std::string weights = comm::broadcast_text(
      group.rank() == 0 ? weights::weights_identity(weights::weights_source(deck)) : "", group);
  BatchInference inference(deck, weights, options, *tokenizer, mesh, log);
  log.open(job::RunDirectory{deck.output.directory}.log());
  log.line("{}", job::RunRecord::of(deck, session).head());
  log.line("{}", plan::table(plan));
  if (inference.remaining() > 0) {
    generate::EngineOptions engine = plan.options;
    inference.complete(engine);
    EngineResponder<T> any_engine(deck, plan, engine, mesh, log);
    const job::Interrupt interrupt;
    const Timer timer;
    const double most_seconds = deck.campaign.max_hours * 3600;
    const auto late = [&] { return most_seconds > 0 && timer.seconds() > most_seconds; };
    const bool whole =
        inference.run(any_engine, [&] { return late() || interrupt.requested(margin_seconds); });
    const comm::LongWait for_slower_replicas;
    if (group.any(!whole)) {
      log.line("stopped by {}; the answers so far are kept; pass --resume to continue",
               late() ? "max_hours" : interrupt.reason());
      return job::interrupted;
    }
  }
  const auto done = inference.finish();
  if (done) require_good(deck, done->summary, log);
  if (done && deck::task_of(deck) == deck::Task::evaluate)
    judge_and_compare(deck, inference, *done, log);
  group.barrier();
  return job::finished;
}

template int answer_file<float>(const deck::Deck&, const job::Options&, const comm::Mesh&,
                                const comm::Session&, Log&);
template int answer_file<bf16>(const deck::Deck&, const job::Options&, const comm::Mesh&,
                               const comm::Session&, Log&);
template int answer_file<fp16>(const deck::Deck&, const job::Options&, const comm::Mesh&,
                               const comm::Session&, Log&);

}  // namespace tern::answer
