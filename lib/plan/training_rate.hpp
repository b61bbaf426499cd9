/// Estimated training rate before a first run: the time of each operation of a step on a known
/// device, from its FLOPs or bytes at measured fractions of the data sheet's rates (see
/// detail/operations.cpp). A typical value, not a bound.
#pragma once
#include <optional>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "plan/devices.hpp"
#include "plan/row_contents.hpp"
#include "workload/workload.hpp"

namespace tern::plan {

/// Seconds per step on one rank, by kind of work.
struct StepTime {
  double products = 0;   // blocks' products, rounding to 8 bits included
  double attention = 0;  // scores and weighted values
  double passes = 0;     // over activations: norms, rotation, gates, sums, dropout, embedding
  double head = 0;       // head and loss
  double optimizer = 0;
  double exchange = 0;  // between ranks, not overlapped
  double waiting = 0;   // for other stages of a pipeline

  double total() const {
    return products + attention + passes + head + optimizer + exchange + waiting;
  }
  StepTime& operator+=(const StepTime& other);
};
StepTime operator*(double factor, StepTime time);

/// Time on the planned device; nothing without its rates. `layout` belongs to `extents`. Local.
std::optional<StepTime> step_time(const deck::Deck& deck, const workload::Layout& layout,
                                  const comm::Extents& extents, const RowContents& contents,
                                  const PlannedDevice& device = {});

/// Tokens/s of the data over all ranks.
std::optional<double> estimated_rate(const deck::Deck& deck, const workload::Layout& layout,
                                     const comm::Extents& extents, const RowContents& contents,
                                     const PlannedDevice& device = {});

}  // namespace tern::plan
