/// Plans for problems with worked solutions, written by a model: requests for it, and the problems
/// with the plans that it wrote, for HDP.
#pragma once
#include <filesystem>

#include "base/log.hpp"

namespace tern::prepare {

struct PlansOptions {
  std::filesystem::path input;    // samples, as data/samples.hpp reads them
  std::filesystem::path answers;  // answers.jsonl to the requests; empty: make the requests
  std::filesystem::path output;
  bool force = false;  // replace an existing output folder
};

struct PlansSummary {
  std::size_t problems = 0;
  std::size_t planned = 0;  // with a plan of the model
  std::size_t telling = 0;  // whose plan says the answer, and is left out
};

/// Without answers writes `output`/requests.jsonl, one request per problem: question and solution,
/// without calculator notes; the "id" is the number of the problem, from 0; and prompt.txt, which
/// asks for a plan.
///
/// With answers writes `output`/samples.jsonl: {"question", "plan", "execution", "answer"} of all
/// problems, without "plan" where the model wrote none or one that has the problem's answer in it.
/// Throws UserError, naming file and line, for an answer to another text.
///
/// The folder is renamed into place when complete.
PlansSummary prepare_plans(const PlansOptions& options, Log& log);

}  // namespace tern::prepare
