/// Answers to a file of requests: task = 'generate' or 'evaluate' with &generation input.
///
/// Files of a run, in its directory (answers and rejects: at &generation output, if set):
///
///   answers.jsonl          training data for a student, in the order of the requests:
///                          {"messages": [{"role": "user", "content": the request's text without
///                          the prompt}, {"role": "assistant", ...}], "id", "label",
///                          "finish_reason": "stop" or, of a text that max_tokens ended, "length"}
///   answers_rejects.jsonl  requests without a good answer: "id", "label", "text", "written",
///                          "reject" (the kind), "reason"
///   generation.json        counts, rates, cost, and the origin of the answers
///
/// Each replica appends its answers to its own part in DIRECTORY/parts/; the files are written from
/// the parts at the end. A run stopped or killed at any moment resumes from the parts, on any
/// number of replicas; its files equal those of an uninterrupted run wherever the engine's texts do
/// (generate/engine.hpp). Journal of another deck or input are refused.
#pragma once
#include <functional>
#include <optional>

#include "answer/answer_reader.hpp"
#include "answer/detail/journal.hpp"
#include "answer/detail/summary.hpp"
#include "answer/prompt.hpp"
#include "answer/requests.hpp"
#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "generate/engine.hpp"
#include "job/options.hpp"
#include "job/run_lock.hpp"

namespace tern::answer {

/// Whether the deck asks for answers to a file of requests.
bool is_batch_inference(const deck::Deck& deck);

/// Ranks that hold one copy of the model. All get the same requests in the same order; the one that
/// `prints` writes files and log.
struct Replica {
  int number, count;
  bool prints;
  comm::Group* ranks;
};
Replica replica_of(const comm::Mesh& mesh);

/// Type-erased engine: hides its precision.
class AnyEngine {
 public:
  virtual ~AnyEngine() = default;
  virtual void submit(generate::Request request) = 0;
  virtual bool busy() const = 0;
  virtual std::vector<generate::Answer> step(const std::function<void()>& meanwhile) = 0;
  virtual generate::Stats stats() const = 0;
};

class BatchInference {
 public:
  /// Reads the requests and the answers of earlier sessions. `weights` identifies the model's
  /// weights. Throws UserError if there is an earlier run without --resume, or one of other origin
  /// (deck, input, weights). Collective.
  BatchInference(const deck::Deck& deck, const std::string& weights, const job::Options& options,
                 const text::Tokenizer& tokenizer, const comm::Mesh& mesh, Log& log);

  const std::vector<ChatRequest>& requests() const { return requests_; }
  /// Requests not answered yet by any replica.
  std::size_t remaining() const { return remaining_; }

  /// Sets the engine options that follow from tokenizer, template and stop texts.
  void complete(generate::EngineOptions& options) const;

  /// Answers this replica's part of the requests; each rank calls `stop` between passes. False if
  /// stopped. Collective over the replica only.
  bool run(AnyEngine& any_engine, const std::function<bool()>& stop);

  /// Writes the files once all requests are answered. Returns summary and records on rank 0,
  /// nothing on the others. Throws UserError if parts were lost. Collective.
  struct Done {
    std::vector<detail::AnswerRecord> records;  // by request number
    detail::AnswerSummary summary;
  };
  std::optional<Done> finish();

 private:
  void load_earlier_parts();
  generate::Request request(std::size_t number) const;
  detail::AnswerRecord judged(const generate::Answer& answer, std::size_t prompt_tokens) const;

  const deck::Deck& deck_;
  const text::Tokenizer& tokenizer_;
  Replica replica_;
  comm::Group& group_;
  Log& log_;
  PromptRules rules_;
  AnswerReader reader_;
  PromptTemplate prompt_;
  std::vector<ChatRequest> requests_;
  detail::AnswerFiles files_;
  detail::Provenance provenance_;
  std::vector<std::uint8_t> answered_;  // by request number
  std::size_t remaining_ = 0;
  std::int64_t session_ = 1;
  job::RunLock lock_;  // held by rank 0
};

/// The whole task, on any number of ranks; task = 'evaluate' also judges the answers
/// (answer/answer_scores.hpp). Collective; returns the exit code.
template <class T>
int answer_file(const deck::Deck& deck, const job::Options& options, const comm::Mesh& mesh,
                const comm::Session& session, Log& log);

}  // namespace tern::answer
