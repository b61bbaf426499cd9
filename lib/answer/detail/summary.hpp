/// Summary of a run that answered a file, for the log and for other runs' evaluations.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "answer/detail/journal.hpp"

namespace tern::answer::detail {

struct AnswerSummary {
  std::string name;
  std::size_t requests = 0, good = 0;
  std::map<std::string, std::size_t> rejects;  // by kind
  std::size_t prompt_tokens = 0, new_tokens = 0;
  std::size_t computed_tokens = 0, reused_tokens = 0;  // prompt tokens
  double seconds = 0;                                  // busy time of replicas
  std::int64_t sessions = 1;
  int devices = 1;
  std::string device;  // name of each device
  double dollars_per_gpu_hour = 0;

  double rate(std::size_t count) const;  // per second; 0 if the time is unknown
  double prompt_tokens_each() const;     // per request
  double reused_share() const;           // fraction of prompt tokens
  double dollars_per_1000() const;       // per 1000 answers, good or not; 0 without a price
  nlohmann::ordered_json to_json() const;
};

AnswerSummary summarize(const deck::Deck& deck, const Journal& parts, int devices);

/// Requests/s per device from generation.json of an earlier run on as many of the same devices.
std::optional<double> measured_rate(const AnswerFiles& files, const std::string& device,
                                    int devices);

/// "3 rejects: 2 cut, 1 pattern"
std::string rejects_in_words(const AnswerSummary& summary);

/// Lines for the log.
std::string table(const AnswerSummary& summary, const AnswerFiles& files);

}  // namespace tern::answer::detail
