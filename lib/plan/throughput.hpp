/// How fast a file of requests will be answered, before it ever was.
///
/// A request's time on a replica is that of its prompt, bound by arithmetic: 2 FLOPs an active
/// parameter and token, and attention; that of its new tokens, bound by memory: the weights that a
/// pass reads (of experts, those that its rows are sent to), shared by the requests of the pass,
/// and each one's keys and values; that of two sums over the tensor ranks a layer; and what the
/// trainer does beside the model. What all prompts begin with is computed once if prefix_cache is
/// on. Stages of a pipeline work one after another, and save no time.
///
/// Each at a share of the data sheet's rate that was reached elsewhere (throughput.cpp says where):
/// an estimate of what is typical, not a bound.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "generate/engine.hpp"
#include "plan/devices.hpp"

namespace tern::plan {

/// Of one device, a second: dense FLOPs at the precision of answering, and bytes of its memory.
struct DeviceRates {
  double flops, bytes;
};
/// By the data sheet, FLOPs by &cost peak_tflops if that is given; nothing on the host and for
/// other devices.
std::optional<DeviceRates> device_rates(const deck::Deck& deck, const PlannedDevice& device = {});

/// Means of a request, and how many there are.
struct Requests {
  double count = 0;
  double prompt_tokens = 0;
  double common_tokens = 0;  // of the prompt: those that all begin with
  double new_tokens = 0;
};

/// Seconds of one replica a request, while it is busy.
struct AnswerTime {
  double prompt = 0, new_tokens = 0, exchange = 0, beside = 0;
  double total() const { return prompt + new_tokens + exchange + beside; }
};
/// `requests`: those of the replica. options.pages 0: the cache holds what batch asks for.
AnswerTime answer_time(const deck::Deck& deck, const generate::EngineOptions& options,
                       const Requests& requests, int tensor, const DeviceRates& rates);

/// What is known about answering a file on the deck's own ranks, and so on others.
struct Throughput {
  Requests requests;
  std::vector<std::string> assumed;     // of them, in words
  comm::Extents own;                    // the deck's ranks,
  generate::EngineOptions own_options;  // and there the options with pages
  std::optional<DeviceRates> rates;     // nothing: no estimate
  std::optional<double> measured;       // requests/s of a device in the last run of the deck

  /// Requests a second of all replicas of `there`, where `options` have the pages that fit: the
  /// measured rate, scaled as the estimate changes from the deck's own ranks to those, or without
  /// an estimate with the replicas alone; else the estimate. Nothing where neither tells.
  std::optional<double> rate(const deck::Deck& deck, const generate::EngineOptions& options,
                             const comm::Extents& there) const;
  /// Which of them rate() is, in words.
  std::string kind(const deck::Deck& deck) const;
};

/// Requests, throughput, time and cost on the deck's own ranks as a table for people.
std::string table(const Throughput& throughput, const deck::Deck& deck);

}  // namespace tern::plan
