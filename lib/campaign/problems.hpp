/// Problems solved by a model of block diffusion: it is given the question alone, and writes plan
/// and execution; the answer is the number after `####`.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "campaign/data_set.hpp"
#include "campaign/writer.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// What the model wrote for one problem.
struct Solution {
  std::string question, plan, execution, expected;  // plan: empty for a flat model
  bool well_formed, correct;  // a number follows `####`; it is the expected one
};

struct Accuracy {
  std::int64_t problems = 0, correct = 0, well_formed = 0;
  double seconds = 0;
  std::vector<Solution> solved;  // this rank's share of them, in order
  std::vector<Solution> shown;   // the first problems' solutions; on rank 0 alone

  double exact_match() const {
    return static_cast<double>(correct) / static_cast<double>(problems);
  }
};

/// Solves the first `count` samples, divided among the ranks; the same solutions for any number of
/// them, up to rounding. Collective. `stop`, if given, is asked before each batch and tells all
/// ranks the same; once it holds, nothing is returned.
template <class T>
std::optional<Accuracy> solve(workload::Workload<T>& workload, const deck::Deck& deck,
                              const std::vector<data::Sample>& samples, std::size_t count,
                              const text::Tokenizer& tokenizer, comm::Group& group,
                              const std::function<bool()>& stop = {});

/// "exact match 12.3% (162 of 1319; 95% interval 10.6 to 14.2%), well-formed 98.1%"
std::string summary(const Accuracy& accuracy);
/// The solutions as a page of text.
std::string page(const std::vector<Solution>& solutions);

/// Texts of a model that was given `prompt` as its question, or, unconditional, as its beginning:
/// then they go on from it, by at most &generation max_tokens.
template <class T>
std::vector<Continuation> write_freely(workload::Workload<T>& workload, const deck::Deck& deck,
                                       const text::Tokenizer& tokenizer, const std::string& prompt);

}  // namespace tern::campaign
