/// Quality of the answers to a file: against its labels, against another model's answers, and
/// compared with the evaluations of other runs. Prompt distillation is judged with it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "answer/detail/summary.hpp"
#include "answer/requests.hpp"
#include "answer/sampling.hpp"

namespace tern::answer {

/// Row of a run in the table; also the contents of evaluation.json.
struct AnswerScores {
  std::string name;
  std::size_t requests = 0, good = 0;
  std::size_t labeled = 0, correct = 0;    // requests with a label; equal to it
  std::size_t compared = 0, agreeing = 0;  // requests in the reference; equal answers
  double requests_per_second = 0, tokens_per_second = 0;  // prompt tokens included
  double prompt_tokens_each = 0, dollars_per_1000 = 0;
  Sampling sampling;    // written, but not read: no part of the table
  std::string missing;  // why there is no evaluation; then the rest is empty
};

/// Judges answers. `reference`: a file of answers, matched by id; empty: none. Throws UserError if
/// it has none of the requests, or a different text for an id.
AnswerScores judge(const std::vector<ChatRequest>& requests,
                   const std::vector<detail::AnswerRecord>& records,
                   const detail::AnswerSummary& summary, const std::filesystem::path& reference);

void write_evaluation(const AnswerScores& scores, const std::filesystem::path& directory);

/// Reads evaluation.json of a run's directory; `missing` gives the reason if there is none.
AnswerScores read_evaluation(const std::filesystem::path& directory);

/// Printable table of the rows, with 95% confidence intervals (Wilson) of accuracies.
std::string scores_table(const std::vector<AnswerScores>& rows);

}  // namespace tern::answer
