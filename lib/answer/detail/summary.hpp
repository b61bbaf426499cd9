/// The figures of a run that answered a file, for people and for evaluations beside it.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "answer/detail/parts.hpp"

namespace tern::answer::detail {

struct BulkSummary {
  std::string name;
  std::size_t requests = 0, good = 0;
  std::map<std::string, std::size_t> rejects;  // by kind
  std::size_t prompt_tokens = 0, new_tokens = 0;
  std::size_t computed_tokens = 0, reused_tokens = 0;  // of prompts
  double seconds = 0;                                  // that replicas were at work
  std::int64_t sessions = 1;
  int devices = 1;
  std::string device;  // what each of them is
  double dollars_per_gpu_hour = 0;

  double rate(std::size_t count) const;  // a second; 0 if no time is known
  double prompt_tokens_each() const;     // of a request
  double reused_share() const;           // of prompts' tokens
  double dollars_per_1000() const;       // answers, good or not; 0 without a price
  nlohmann::ordered_json to_json() const;
};

BulkSummary summarise(const deck::Deck& deck, const Parts& parts, int devices);

/// Requests a second of a device in the run that left its figures, if one did on as many of these.
std::optional<double> measured_rate(const BulkFiles& files, const std::string& device, int devices);

/// As lines for the log.
std::string table(const BulkSummary& summary, const BulkFiles& files);

}  // namespace tern::answer::detail
