/// Estimated throughput of answering a file of requests, before a first run.
///
/// The time of a request on a replica has four parts: its prompt, compute-bound (2 FLOPs per active
/// parameter and token, and attention); its new tokens, memory-bound (weights read per pass, of
/// experts only those its rows are routed to, shared by the requests of the pass; and the request's
/// own keys and values); two all-reduces per layer over the tensor ranks; and the trainer's work
/// outside the model. The common beginning of all prompts is computed once if prefix_cache is on.
/// Pipeline stages share the work evenly, each pass with its part of the requests.
///
/// Each part runs at a fraction of the data sheet's rate, measured elsewhere (see throughput.cpp):
/// a typical value, not a bound.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "generate/engine.hpp"
#include "plan/devices.hpp"

namespace tern::plan {

/// Per device: dense FLOP/s at the precision of answering, and memory bytes/s.
struct DeviceRates {
  double flops, bytes;
  Nodes nodes = {};
  double flops_fp8 = 0;  // 0: weights in fp8 are not read as such
  bool timed = false;    // a host's own, at which a product and a copy run (time_host)
};
/// From the data sheet, FLOP/s from &cost peak_tflops if given, or as timed on a host; nothing on
/// unknown devices.
std::optional<DeviceRates> device_rates(const deck::Deck& deck, const PlannedDevice& device = {});

/// Number of requests, and means per request.
struct Requests {
  double count = 0;
  double prompt_tokens = 0;
  double common_tokens = 0;  // common beginning of all prompts
  double new_tokens = 0;
};

/// Seconds per request of a busy replica.
struct AnswerTime {
  double prompt = 0, new_tokens = 0, exchange = 0, overhead = 0;
  double total() const { return prompt + new_tokens + exchange + overhead; }
};
/// `requests`: those of one replica of tensor x pipeline ranks. options.pages = 0: a cache for the
/// whole batch.
AnswerTime answer_time(const deck::Deck& deck, const generate::EngineOptions& options,
                       const Requests& requests, const comm::Extents& replica,
                       const DeviceRates& rates);

/// Throughput of answering a file on the deck's own ranks, and scaled to others.
struct Throughput {
  Requests requests;
  std::vector<std::string> assumed;     // about the requests, in words
  comm::Extents own;                    // the deck's ranks
  generate::EngineOptions own_options;  // with the pages of these ranks
  std::optional<DeviceRates> rates;     // nothing: no estimate
  bool network_given = false;           // rates->nodes.gigabits, by the user
  std::optional<double> measured;       // requests/s per device in the deck's last run

  /// Requests/s over all replicas of `there`; `options` with the pages that fit there. The measured
  /// rate, scaled by the ratio of estimates, or without estimates by the number of replicas; else
  /// the estimate; nothing without either.
  std::optional<double> rate(const deck::Deck& deck, const generate::EngineOptions& options,
                             const comm::Extents& there) const;
  /// Source of rate(), in words.
  std::string kind(const deck::Deck& deck) const;
};

/// Printable table of requests, throughput, time and cost on the deck's own ranks.
std::string table(const Throughput& throughput, const deck::Deck& deck);

}  // namespace tern::plan
