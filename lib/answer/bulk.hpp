/// Answers to a file of requests: task = 'generate' or 'evaluate' with &generation input.
///
/// A run leaves in its directory, or where &generation output says:
///   answers.jsonl          in the order of the requests, {"messages": [{"role": "user", "content":
///                          the request's text, without the prompt}, {"role": "assistant", ...}],
///                          "id", "label"}: what a student learns from
///   answers_rejects.jsonl  what has no good answer: "id", "label", "text", "written", "reject"
///   (the
///                          kind), "reason"
///   generation.json        counts, rates, cost, and what the answers were made from
///
/// Each replica appends what it has answered to a part of its own, DIRECTORY/parts/, from which the
/// files are made at the end. A run that is stopped or killed at any moment goes on from the parts,
/// on any number of replicas; the files are the same as an uninterrupted run's wherever the
/// engine's texts are (generate/engine.hpp). Parts of another deck or input are refused.
#pragma once
#include <functional>
#include <optional>

#include "answer/answer_reader.hpp"
#include "answer/detail/parts.hpp"
#include "answer/detail/summary.hpp"
#include "answer/requests.hpp"
#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "generate/engine.hpp"
#include "job/options.hpp"
#include "job/run_lock.hpp"

namespace tern::answer {

/// Whether the deck asks for answers to a file.
bool answers_a_file(const deck::Deck& deck);

/// What the model is given for a request's text.
std::vector<std::int32_t> prompt_tokens(std::string_view text, const PromptTemplate& prompt,
                                        const text::ChatRules& chat,
                                        const text::Tokenizer& tokenizer);

/// Ranks that hold one copy of the model. They are given the same requests in the same order; one
/// of them speaks, that is, writes.
struct Replica {
  int number, count;
  bool speaks;
  comm::Group* ranks;
};
Replica replica_of(const comm::Mesh& mesh);

/// What answers requests: the engine, behind its precision.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void submit(generate::Request request) = 0;
  virtual bool busy() const = 0;
  virtual std::vector<generate::Answer> step() = 0;
  virtual generate::Figures figures() const = 0;
};

class Bulk {
 public:
  /// Reads the requests and what was answered before. `weights` names what the model's weights are
  /// from, and changes with them. Throws UserError if there is an earlier run that is not to be
  /// resumed, or that was made from something else. Collective.
  Bulk(const deck::Deck& deck, const std::string& weights, const job::Options& options,
       const text::Tokenizer& tokenizer, const comm::Mesh& mesh, Log& log);

  const std::vector<ChatRequest>& requests() const { return requests_; }
  /// Requests that no replica has answered yet.
  std::size_t remaining() const { return remaining_; }

  /// What the tokenizer, the template and the stop texts add to the engine's options.
  void complete(generate::EngineOptions& options) const;

  /// Answers this replica's share, until `stop` holds, which each of its ranks asks between passes.
  /// False if it was stopped. Not collective over replicas.
  bool run(Responder& responder, const std::function<bool()>& stop);

  /// Once all is answered: writes the files. Rank 0 has the summary and the
  /// results; nothing on the others. Collective.
  struct Done {
    std::vector<detail::BulkRecord> records;  // by number of the request
    detail::BulkSummary summary;
  };
  std::optional<Done> finish();

 private:
  void take_up();
  generate::Request request(std::size_t number) const;
  detail::BulkRecord judged(const generate::Answer& answer, std::size_t prompt_tokens) const;

  const deck::Deck& deck_;
  const text::Tokenizer& tokenizer_;
  Replica replica_;
  comm::Group& group_;
  Log& log_;
  text::ChatRules chat_;
  AnswerReader reader_;
  PromptTemplate prompt_;
  std::vector<ChatRequest> requests_;
  detail::BulkFiles files_;
  detail::MadeFrom made_from_;
  std::vector<std::uint8_t> answered_;  // by number of the request
  std::size_t remaining_ = 0;
  std::int64_t session_ = 1;
  job::RunLock lock_;  // rank 0's
};

/// The whole task, on any number of ranks; with task = 'evaluate' the answers are judged as well
/// (answer/gap.hpp). Collective; the exit code.
template <class T>
int answer_file(const deck::Deck& deck, const job::Options& options, const comm::Mesh& mesh,
                const comm::Session& session, Log& log);

}  // namespace tern::answer
