/// Estimated seconds of single operations on a known device.
#pragma once
#include "deck/deck.hpp"
#include "plan/detail/devices.hpp"
#include "plan/devices.hpp"

namespace tern::plan::detail {

/// Linear map from `in` to `out` numbers per row.
struct Map {
  double in, out;
};

/// Attention of all heads of a micro-batch.
struct Attention {
  double queries, keys, tokens;  // keys: mean per query; tokens: per row
  double head_dim;
  bool spans;  // a mask skipped by tiles, else causal
};

/// Ranks of a collective, in the order in which nodes hold ranks.
struct Team {
  int ranks;
  int block;       // consecutive ranks that are divided into such teams; nodes may divide it
  int stride = 1;  // from one rank of the team to the next
};

class Operations {
 public:
  struct Efficiencies;

  /// In the deck's precision, for `ranks` devices with rates, to which a reference is kept.
  Operations(const deck::Deck& deck, const PlannedDevice& device, int ranks);

  /// Bytes per number of an activation.
  double bytes() const { return bytes_; }

  /// Products of a block's linear map with `rows` rows; backward: gradients of input and weight.
  double forward(const Map& map, double rows) const;
  double backward(const Map& map, double rows) const;
  /// In fp8, what the first micro-batch of a step takes longer: it rounds weights, and finds scales
  /// before it rounds operands. Blocks that are recomputed take it in every micro-batch.
  double first(const Map& map, double rows) const;
  /// One product of `flops` that is not in fp8; `least`: the smallest of its sizes.
  double product(double flops, double least) const;
  /// Products of experts, few rows each.
  double expert_product(double flops) const;
  /// Orthogonalization of matrices, in groups of one shape.
  double newton_schulz(double flops, double groups) const;

  double forward(const Attention& a) const;
  double backward(const Attention& a) const;

  /// Memory-bound kernels.
  double pass(double bytes, double kernels = 1) const;
  double dropout(double numbers, double arrays) const;

  /// `count` collectives of `team`, each rank sending `bytes` in each.
  double exchange(double bytes, const Team& team, double count = 1) const;
  /// The same for sums of blocks, where two ranks of a node exchange parts, which overlaps; in
  /// forward only unless blocks are computed as a `whole`.
  double overlapped_exchange(double bytes, const Team& team, double count, bool whole) const;

 private:
  double attention(const Attention& a, double products, double share, double a_key) const;
  bool in_fp8(const Map& map) const;

  const KnownDevice& device_;
  Nodes nodes_;
  const Efficiencies& efficiencies_;
  bool timed_, fp8_, fp32_;  // fp32_: of a data sheet
  double bytes_, flops_;
};

}  // namespace tern::plan::detail
