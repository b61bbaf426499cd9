/// Sliding-window causal attention (Beltagy et al. 2020, "Longformer", section 3.1) whose window
/// may grow over the first steps: a position attends to itself and the w - 1 before it. The mask is
/// a pattern of spans (ops/pattern.hpp); a window of all tokens is the plain causal one.
#pragma once
#include "objective/staging.hpp"

namespace tern::objective {

/// Tokens attended to in optimizer step `step` (from 0): &model window_start and, over window_steps,
/// evenly more by multiples of 64; then window. 0: all.
std::int64_t window_at(const deck::Model& model, std::uint64_t step);

class WindowMask {
 public:
  WindowMask(const deck::Model& model, const Shape& shape, Arena& arena);

  /// For (B, T) queries; `slot`: see Objective::prepare. An evaluation has the last step's window.
  ops::Pattern pattern(const Device& space, std::uint64_t step, std::size_t slot, bool evaluating);

 private:
  void lay_out(std::size_t window);

  deck::Model model_;
  std::size_t batch_, tokens_, window_ = 0;  // of the table; 0: not made yet
  ops::SpanTable table_;
  std::vector<Staging<ops::KeySpans>> spans_;  // one, or none without a window
  std::vector<Staging<ops::SpanHull>> hulls_;
};

}  // namespace tern::objective
