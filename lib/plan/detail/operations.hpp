/// Seconds of single operations on a known device.
#pragma once
#include "deck/deck.hpp"
#include "plan/detail/devices.hpp"

namespace tern::plan::detail {

/// The linear map from `in` to `out` numbers a row.
struct Map {
  double in, out;
};

/// Of all heads of a micro-step.
struct Attention {
  double queries, keys, tokens;  // keys: that a query sees, on average; tokens: of a row
  double head_dim;
  bool spans;  // seen by tiles, else causally
};

class Operations {
 public:
  struct Shares;

  /// In the deck's precision.
  Operations(const deck::Deck& deck, const KnownDevice& device);

  /// Bytes of a number of an activation.
  double bytes() const { return bytes_; }

  /// Products of a block's map with `rows` rows; backward: gradients of input and weight.
  double forward(const Map& map, double rows) const;
  double backward(const Map& map, double rows) const;
  /// One product of `flops` in full precision of the deck, the least of its sizes `least`.
  double product(double flops, double least) const;
  /// Products of experts, of few rows each.
  double expert_product(double flops) const;
  /// Matrices made orthogonal, in groups of one shape.
  double newton_schulz(double flops, double groups) const;

  double forward(const Attention& a) const;
  double backward(const Attention& a) const;

  /// A kernel, or several, bound by memory.
  double pass(double bytes, double kernels = 1) const;
  double dropout(double numbers) const;

  /// Collectives of `ranks` ranks, each of which sends `bytes` in each.
  double exchange(double bytes, int ranks, double count = 1) const;

 private:
  double attention(const Attention& a, double products, double share, double a_key) const;
  double rounding(double bytes) const;

  const KnownDevice& device_;
  const Shares& shares_;
  bool fp8_, fp32_;
  double bytes_, flops_;
};

}  // namespace tern::plan::detail
