/// How good the answers to a file are: against its labels, against another model's answers, and
/// beside other runs' evaluations of the same kind. What prompt distillation is judged by.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "answer/detail/summary.hpp"
#include "answer/requests.hpp"

namespace tern::answer {

/// A run's row of the table; evaluation.json holds the same.
struct Gap {
  std::string name;
  std::size_t requests = 0, good = 0;
  std::size_t labelled = 0, correct = 0;   // requests with a label; of these answered so
  std::size_t compared = 0, agreeing = 0;  // requests that the reference answers; answered alike
  double requests_per_second = 0, tokens_per_second = 0;  // tokens: of prompts and answers
  double prompt_tokens_each = 0, dollars_per_1000 = 0;
  std::string missing;  // why there is no evaluation; the rest is then empty
};

/// Judges answers. `reference`: a file of answers, matched by id; empty: none. Throws UserError if
/// it answers none of the requests, or another text under an id.
Gap judge(const std::vector<ChatRequest>& requests, const std::vector<detail::BulkRecord>& records,
          const detail::BulkSummary& summary, const std::filesystem::path& reference);

void write_evaluation(const Gap& gap, const std::filesystem::path& directory);

/// The evaluation.json of a run's directory; its `missing` says what is wrong if there is none.
Gap read_evaluation(const std::filesystem::path& directory);

/// The rows as a table for people, with 95% confidence intervals (Wilson) of accuracies.
std::string gap_table(const std::vector<Gap>& rows);

}  // namespace tern::answer
