/// Problems solved by a block-diffusion model: given the question only, it generates plan and
/// execution; the answer is the number after `####`.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "answer/sampling.hpp"
#include "campaign/data_set.hpp"
#include "campaign/writer.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// The model's solution of one problem.
struct Solution {
  std::string question, plan, execution, expected;  // plan: empty without hierarchy
  bool well_formed, correct;  // a number follows `####`; it equals the expected one
};

struct Accuracy {
  std::int64_t problems = 0, correct = 0, well_formed = 0;
  answer::Sampling sampling;
  std::vector<Solution> solved;  // on this rank, in order
  std::vector<Solution> shown;   // the first solutions; on rank 0 only

  double exact_match() const {
    return static_cast<double>(correct) / static_cast<double>(problems);
  }
};

/// Solves the first `count` samples, divided over the ranks; the same solutions for any number of
/// ranks, up to rounding. `between`, if given, is called before each batch with the number of this
/// rank's samples done and of all of them; if it returns true, on all ranks, nothing is returned.
/// Collective.
template <class T>
std::optional<Accuracy> solve(workload::Workload<T>& workload, const deck::Deck& deck,
                              const std::vector<data::Sample>& samples, std::size_t count,
                              const text::Tokenizer& tokenizer, comm::Group& group,
                              const std::function<bool(std::size_t, std::size_t)>& between = {});

/// "exact match 12.3% (162 of 1319; 95% interval 10.6 to 14.2%), well-formed 98.1%"
std::string summary(const Accuracy& accuracy);
/// The solutions as text.
std::string page(const std::vector<Solution>& solutions);

/// Texts generated with `prompt` as the question, or if &data holds no samples, as the beginning,
/// continued with at most &generation max_tokens tokens.
template <class T>
std::vector<Continuation> write_freely(workload::Workload<T>& workload, const deck::Deck& deck,
                                       const text::Tokenizer& tokenizer, const std::string& prompt);

}  // namespace tern::campaign
