#include "plan/throughput.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "deck/rules.hpp"
#include "model/declare.hpp"
#include "parameters/parameters.hpp"
#include "plan/detail/devices.hpp"
#include "plan/detail/rows.hpp"
#include "words/numbers.hpp"

namespace tern::plan {
namespace {

// Fractions of the data sheet's rates, from bench_engine on H200s with Qwen3's shapes in bf16,
// random weights, 2026-11-22.
constexpr double of_products = 0.55;  // 4B, prompts of 512: 73,800 tokens/s
constexpr double of_fp8 = 0.37;       // the same with maps and their inputs in fp8: 99,300
constexpr double of_experts = 0.24;   // 30B-A3B, prompts of 940, no prefix cache: 50.7 requests/s
constexpr double of_weights = 0.70;   // the same with it, 900 in common: 537 requests/s
constexpr double of_cache = 0.30;     // 4B, decoding 64 requests of 544 tokens: 10,370 tokens/s
// All-reduce over two ranks with NVLink: 30B-A3B with tensor = 2, 76.8 and 683 requests/s.
constexpr double exchange_latency = 50e-6;  // s
constexpr double exchange_bytes = 135e9;    // per second, each of two ranks sending all
constexpr double of_network = 0.80;         // and twice the latency; assumed, not measured
// Time per request in the trainer (939 tokens, 874 in common, 333 requests/s) less that in
// bench_engine. Tokenization is a sixth; the rest has not been broken down.
constexpr double overhead_seconds = 0.55e-3;

struct Shape {
  double blocks, experts, head;  // parameters: layers without experts; experts; head
  double active_experts;         // expert parameters used per token
  double bytes;                  // per number
  double cache_bytes;            // per token in a rank's cache
  double attention;              // FLOPs per token and key, over all layers
};

Shape shape_of(const deck::Deck& deck, const generate::EngineOptions& options, int tensor) {
  const deck::Model& m = deck.model;
  const auto parameters = model::ParameterTree(model::declare(m)).count();
  Shape s{};
  s.head = static_cast<double>(m.vocabulary * m.hidden);
  s.experts = static_cast<double>(m.layers * m.experts * 3 * m.hidden * m.expert_hidden);
  s.active_experts =
      m.experts > 0 ? s.experts * static_cast<double>(m.experts_per_token) / m.experts : 0;
  const auto values =
      static_cast<double>(m.value_embeddings * m.vocabulary * m.kv_heads * m.head_dim);
  s.blocks =
      static_cast<double>(parameters) - s.experts - (m.tie_embeddings ? 1 : 2) * s.head - values;
  s.bytes = deck::stores_fp32(deck.precision) ? sizeof(float) : sizeof(bf16);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, m.kv_heads / tensor);
  const double of_head = options.fp8_cache ? static_cast<double>(m.head_dim) + sizeof(float)
                                           : static_cast<double>(m.head_dim) * s.bytes;
  s.cache_bytes = static_cast<double>(2 * m.layers * kv_heads) * of_head;
  s.attention = static_cast<double>(4 * m.layers * m.heads * m.head_dim);
  return s;
}

/// Tokens of a prompt found in the prefix cache: whole pages.
double found_tokens(const generate::EngineOptions& options, const Requests& r) {
  constexpr auto P = static_cast<double>(generate::Engine<bf16>::page_tokens);
  return options.prefix_cache ? std::floor(r.common_tokens / P) * P : 0;
}

/// Upper bound of the mean number of running requests.
double running(const generate::EngineOptions& options, const Requests& r) {
  const double most = std::min(static_cast<double>(options.batch), r.count);
  if (options.pages == 0) return most;
  constexpr auto P = static_cast<double>(generate::Engine<bf16>::page_tokens);
  const double found = found_tokens(options, r);
  const double own = r.prompt_tokens - found + r.new_tokens;
  const double room = static_cast<double>(options.pages) * P - found;
  return std::clamp(room / own, 1.0, std::max(1.0, most));
}

std::optional<double> estimate(const Throughput& t, const deck::Deck& deck,
                               const generate::EngineOptions& options,
                               const comm::Extents& extents) {
  if (!t.rates) return std::nullopt;
  Requests share = t.requests;
  share.count = std::max(1.0, share.count / extents.data);
  DeviceRates rates = *t.rates;
  if (rates.nodes.count(extents.ranks()) == 1) rates.nodes.ranks = 0;
  return extents.data / answer_time(deck, options, share, extents, rates).total();
}

}  // namespace

std::optional<DeviceRates> device_rates(const deck::Deck& deck, const PlannedDevice& device) {
  const detail::KnownDevice* known = device.rates();
  if (!known) return std::nullopt;
  if (device.timed())
    return DeviceRates{1e12 * known->tflops_fp32 / of_products,
                       1e12 * known->terabytes / of_weights, device.placed(), 0, true};
  // fp8 is for training only.
  const std::string& asked = deck.precision.compute;
  const std::string compute = deck::stores_fp32(deck.precision) ? asked : "bf16";
  const double given = deck.cost.peak_tflops;
  return DeviceRates{1e12 * (given > 0 ? given : known->tflops(compute)), 1e12 * known->terabytes,
                     device.placed(),
                     known->tflops_fp8 > known->tflops_bf16 ? 1e12 * known->tflops_fp8 : 0};
}

AnswerTime answer_time(const deck::Deck& deck, const generate::EngineOptions& options,
                       const Requests& r, const comm::Extents& replica, const DeviceRates& rates) {
  const int tensor = replica.tensor, stages = replica.pipeline;
  const Shape s = shape_of(deck, options, tensor);
  const double at_once = std::max(1.0, running(options, r) / stages);  // in a pass
  const double found = found_tokens(options, r);
  const double own = r.prompt_tokens - found, computed = own + found / r.count;

  // Compute: a prompt token attends to the mean length before it; a sampled one needs the head.
  const double products = 2 / (of_products * rates.flops), experts = 2 / (of_experts * rates.flops);
  const bool codes = options.fp8_weights && rates.flops_fp8 > 0 && s.bytes == sizeof(bf16);
  const double maps = codes && options.fp8_inputs ? 2 / (of_fp8 * rates.flops_fp8) : products;
  const double row = (s.blocks * maps + s.active_experts * experts) / tensor;
  const double before = found + own / 2;
  const double attention = s.attention * before / (of_products * rates.flops) / tensor;
  const double drawn = row + s.head * products / tensor;

  // Weight traffic of a pass with `rows` rows. In fp8 at the same fraction: not measured.
  const auto weights = [&](double rows) {
    const bool read =
        codes && (options.fp8_inputs || rows <= static_cast<double>(ops::fp8_weight_rows));
    const double idle = s.experts > 0 ? std::pow(1 - s.active_experts / s.experts, rows) : 0;
    const double blocks = s.blocks * (read ? sizeof(std::uint8_t) : s.bytes);
    return (blocks + (s.head + s.experts * (1 - idle)) * s.bytes) / tensor /
           (of_weights * rates.bytes);
  };
  const double keys = s.cache_bytes / (of_cache * rates.bytes);

  // Passes per request. Later prompts are prefilled in the passes that decode earlier requests.
  const auto chunk = static_cast<double>(options.prefill_tokens);
  const double prompt_passes = computed / chunk;
  const double shared_passes = prompt_passes * (1 - std::min(1.0, stages * at_once / r.count));
  const double drawing = std::max(0.0, r.new_tokens - 1) / at_once;  // prefill samples the first
  const double own_passes = std::max(0.0, drawing - shared_passes);

  AnswerTime time;
  time.prompt = std::max(computed * (row + attention), prompt_passes * weights(chunk));
  time.new_tokens = own_passes * std::max(weights(at_once), at_once * drawn) +
                    std::max(0.0, r.new_tokens - 1) * keys *
                        (own + r.new_tokens / 2 + found / at_once);  // shared pages are read once
  if (tensor > 1) {
    const auto layers = static_cast<double>(deck.model.layers);
    const double bytes =
        s.bytes * static_cast<double>(deck.model.hidden) * (computed + r.new_tokens);
    const bool crosses = rates.nodes.divide(tensor);
    const double network = 1e9 / 8 * rates.nodes.gigabits * std::gcd(rates.nodes.ranks, tensor);
    const double link = crosses ? std::min(exchange_bytes, of_network * network) : exchange_bytes;
    time.exchange = 2 * layers *
                    ((prompt_passes + own_passes) * (crosses ? 2 : 1) * exchange_latency +
                     bytes * 2 * (tensor - 1) / tensor / link);
  }
  for (double* part : {&time.prompt, &time.new_tokens, &time.exchange}) *part /= stages;
  time.overhead = overhead_seconds;
  return time;
}

std::optional<double> Throughput::rate(const deck::Deck& deck,
                                       const generate::EngineOptions& options,
                                       const comm::Extents& there) const {
  const auto estimated = estimate(*this, deck, options, there);
  if (!measured) return estimated;
  const double mine = *measured * own.ranks();
  if (const auto here = estimate(*this, deck, own_options, own)) return mine * *estimated / *here;
  if (there.tensor != own.tensor || there.pipeline != own.pipeline) return std::nullopt;
  return mine * there.data / own.data;
}

std::string Throughput::kind(const deck::Deck& deck) const {
  if (measured) return fmt::format("as the last run in {} measured", deck.output.directory);
  if (!rates) return "no estimate for this device; a run measures it";
  if (rates->timed)
    return fmt::format(
        "estimated from {:.0f} GFLOP/s and {:.0f} GB/s, timed just now; within a factor of two or "
        "so",
        rates->flops * of_products / 1e9, rates->bytes * of_weights / 1e9);
  return fmt::format(
      "estimated, typical of such models on {:.0f} TFLOP/s and {:.2f} TB/s; no bound",
      rates->flops / 1e12, rates->bytes / 1e12);
}

std::string table(const Throughput& t, const deck::Deck& deck) {
  using detail::remark, detail::row;
  const Requests& r = t.requests;
  std::string text = row("requests", fmt::format("{:.0f}", r.count)) +
                     row("prompt tokens", fmt::format("{:.1f} each", r.prompt_tokens)) +
                     row("in common", fmt::format("{:.0f} tokens", r.common_tokens)) +
                     row("new tokens", fmt::format("{:.0f} each", r.new_tokens)) +
                     remark("at most: max_tokens");
  for (const std::string& what : t.assumed) text += remark("assumed: " + what);
  if (t.rates) text += detail::node_rows(t.rates->nodes, t.own, t.network_given);
  const auto rate = t.rate(deck, t.own_options, t.own);
  if (!rate) return text + row("time", t.kind(deck));
  const double seconds = r.count / *rate;
  text += row("rate", fmt::format("{:.1f} requests/s", *rate)) + remark(t.kind(deck));
  text += row("time", duration(seconds));
  if (const double price = deck.cost.dollars_per_gpu_hour; price > 0)
    text += row("cost", fmt::format("${:.2f}", seconds / 3600 * t.own.ranks() * price));
  return text;
}

}  // namespace tern::plan
