#include "plan/detail/operations.hpp"

#include <algorithm>
#include <numeric>

#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "ops/linear/fp8.hpp"

namespace tern::plan::detail {

// Fractions of the data sheet's rates, and minimum times, fitted to the rates in
// tests/plan/test_training_rate.cpp. bf16 and fp8: 350M GPT, TRM, Qwen3-4B and block diffusion on
// H200s and H100s, 2026-11-25. fp32, with portable kernels: the four small decks, whose kernels are
// short, 2026-11-22.
struct Operations::Efficiencies {
  double products;
  double causal_forward, causal_backward;  // attention FLOPs, per pair allowed by the mask
  double spans_forward, spans_backward;    // per tile touched by the mask
  double memory;
  double newton_schulz;  // bf16: 12 layers of 768 on an H100, 2026-11-21: 4.4 ms
  double kernel;         // s, minimum per kernel
};

namespace {

constexpr Operations::Efficiencies bf16_efficiencies{0.69, 0.335, 0.174, 0.34,
                                                     0.32, 0.87,  0.4,   5e-6};
constexpr Operations::Efficiencies fp32_efficiencies{0.18, 0.10, 0.05,   0.10,
                                                     0.05, 0.36, 0.0094, 13e-6};
// tf32, passes and Newton-Schulz with portable kernels: fitted to HDP, TRM and eight layers of
// Qwen3-4B on an H100, 2026-11-25.
constexpr Operations::Efficiencies tf32_efficiencies{0.42, 0.12, 0.12,   0.12,
                                                     0.12, 0.30, 0.0115, 13e-6};
// Of a product and a copy timed on the processors themselves (time_host).
constexpr Operations::Efficiencies host_efficiencies{1.0, 0.5, 0.4, 0.5, 0.4, 0.8, 0.5, 5e-6};
constexpr double fp8_products = 0.55;
constexpr double expert_products = 0.29;  // about 512 rows per expert, as in bench_engine
constexpr double narrow = 48;  // bf16: loss of efficiency with the smallest size of a product
constexpr double tile = 128;   // keys
// Causal attention with heads of 128 compared with 64: cuDNN, 2026-11-21.
constexpr double of_wide_heads = 1.3;
/// Of backward with heads of 64 and of 128, in 16 bits: ops/attention/cuda/causal_bwd_sm90.
constexpr double own_backward = 0.335, own_backward_wide = 0.38;
// In fp32 a team loops over the key tiles of a row, and there are few teams: seconds per key with
// heads of 64, half of it for the scores.
constexpr double key_forward = 0.8e-6, key_backward = 3.1e-6;
// Numbers dropped per second: one Philox draw per eight. In fp32 by the portable kernel.
constexpr double dropped = 1400e9, dropped_fp32 = 120e9;
constexpr double dropped_per_flop = 0.002;  // on a host, relative to the rate of products
// Fractions of NVLink's rate with two ranks, and with more.
constexpr double of_two = 0.60, of_more = 0.80, collective = 20e-6;  // s per collective
// Fraction of a sum's time by which exchanges of parts delay the work that they overlap (350M GPT in
// bf16, two H100, 2026-11-25); where forward's do not overlap (the same in fp8).
constexpr double not_hidden = 0.35, not_hidden_of_whole = 0.72;
// Between nodes: assumed, not measured.
constexpr double of_network = 0.80, collective_between = 100e-6;

double width_gain(double head_dim) { return head_dim > 64 ? of_wide_heads : 1; }

const Operations::Efficiencies& efficiencies_of(const deck::Precision& precision, bool timed) {
  if (timed) return host_efficiencies;
  if (deck::compute_of(precision) == deck::Compute::tf32) return tf32_efficiencies;
  return deck::stores_fp32(precision) ? fp32_efficiencies : bf16_efficiencies;
}

}  // namespace

Operations::Operations(const deck::Deck& deck, const PlannedDevice& device, int ranks)
    : device_(*device.rates()),
      nodes_(device.nodes().count(ranks) > 1 ? device.placed() : Nodes()),
      efficiencies_(efficiencies_of(deck.precision, device.timed())),
      timed_(device.timed()),
      fp8_(deck::compute_of(deck.precision) == deck::Compute::fp8 &&
           device_.tflops_fp8 > device_.tflops_bf16),
      fp32_(deck::compute_of(deck.precision) == deck::Compute::fp32 && !timed_),
      bytes_(deck::stores_fp32(deck.precision) ? 4 : 2),
      flops_(1e12 * (timed_ ? device_.tflops_fp32
                     : fp8_ ? device_.tflops_bf16
                            : device_.tflops(deck.precision.compute))) {}

double Operations::product(double flops, double least) const {
  const bool any_width = fp32_ || timed_;
  const double share = efficiencies_.products * (any_width ? 1 : std::max(0.1, 1 - narrow / least));
  return std::max(efficiencies_.kernel, flops / (share * flops_));
}

double Operations::expert_product(double flops) const {
  const double share = timed_ ? efficiencies_.products : expert_products;
  return std::max(efficiencies_.kernel, flops / (share * flops_));
}

// Five iterations of three products, and three passes.
double Operations::newton_schulz(double flops, double groups) const {
  return std::max(18 * groups * efficiencies_.kernel,
                  flops / (efficiencies_.newton_schulz * flops_));
}

bool Operations::in_fp8(const Map& map) const {
  return fp8_ &&
         ops::fp8_takes(16, static_cast<std::size_t>(map.in), static_cast<std::size_t>(map.out));
}

// Operations that produce most operands write them in fp8, straight and transposed, in as many bytes as
// bf16. Rounded apart are the attention's result, once each way, and the gradient of the residual
// stream, for two of a block's four maps: shared out evenly.
double Operations::forward(const Map& map, double rows) const {
  const double flops = 2 * rows * map.in * map.out, least = std::min(map.in, map.out);
  if (!in_fp8(map)) return product(flops, least);
  return flops / (fp8_products * 1e12 * device_.tflops_fp8) + pass(0.75 * rows * least);
}

double Operations::backward(const Map& map, double rows) const {
  const double flops = 2 * rows * map.in * map.out, least = std::min(map.in, map.out);
  if (!in_fp8(map)) return 2 * product(flops, least);
  return 2 * flops / (fp8_products * 1e12 * device_.tflops_fp8) + pass(2.75 * rows * least);
}

double Operations::first(const Map& map, double rows) const {
  if (!in_fp8(map)) return 0;
  return pass(4 * rows * map.in + 2 * rows * map.out + 6 * map.in * map.out, 4);
}

double Operations::attention(const Attention& a, double products, double share,
                             double a_key) const {
  const double keys = a.keys + (a.spans ? tile : 0);
  const double flops = 2 * products * a.queries * keys * a.head_dim;
  const double in_turn = fp32_ ? a_key * a.tokens * (a.head_dim + 64) / 128 : 0;
  return std::max({efficiencies_.kernel, flops / (share * flops_), in_turn});
}

double Operations::forward(const Attention& a) const {
  const double causal = efficiencies_.causal_forward * (timed_ ? 1 : width_gain(a.head_dim));
  return attention(a, 2, a.spans ? efficiencies_.spans_forward : causal, key_forward);
}

double Operations::backward(const Attention& a) const {
  const double causal = timed_                       ? efficiencies_.causal_backward
                        : !fp32_ && a.head_dim == 64 ? own_backward
                        : bytes_ == 2 && a.head_dim == 128
                            ? own_backward_wide
                            : efficiencies_.causal_backward * width_gain(a.head_dim);
  return attention(a, 5, a.spans ? efficiencies_.spans_backward : causal, key_backward);
}

double Operations::pass(double bytes, double kernels) const {
  return std::max(kernels * efficiencies_.kernel,
                  bytes / (efficiencies_.memory * 1e12 * device_.terabytes));
}

double Operations::dropout(double numbers, double arrays) const {
  const double rate = timed_ ? dropped_per_flop * flops_ : fp32_ ? dropped_fp32 : dropped;
  return std::max(pass(arrays * numbers * bytes_), numbers / rate);
}

// As NCCL's rings, in which each rank sends its bytes to the next one. Over several nodes there are as
// many rings as the team has ranks on a node, each through another adapter with its part of the
// bytes; the slower kind of link decides.
double Operations::exchange(double bytes, const Team& team, double count) const {
  const double link = (team.ranks > 2 ? of_more : of_two) * 1e9 * device_.gigabytes_link;
  if (!nodes_.divide(team.block)) return count * (collective + bytes / link);
  const int rings = std::max(1, std::gcd(nodes_.ranks, team.block) / team.stride);
  const double between = of_network * 1e9 / 8 * nodes_.gigabits * rings;
  return count * (collective_between + bytes / std::min(link, between));
}

double Operations::overlapped_exchange(double bytes, const Team& team, double count,
                                       bool whole) const {
  const bool parts = team.ranks == 2 && !nodes_.divide(team.block);
  return (!parts ? 1 : whole ? not_hidden_of_whole : not_hidden) * exchange(bytes, team, count);
}

}  // namespace tern::plan::detail
