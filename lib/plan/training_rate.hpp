/// How fast a deck trains, before it ever did: what each operation of a step takes of a known
/// device, by its FLOPs or by its bytes, at shares of the data sheet's rates that were reached
/// (detail/operations.cpp says where and when). An estimate of what is typical, not a bound.
#pragma once
#include <optional>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "plan/devices.hpp"
#include "plan/row_contents.hpp"
#include "workload/workload.hpp"

namespace tern::plan {

/// Seconds of a step on one rank, by what they are spent on.
struct StepTime {
  double products = 0;   // of the blocks, with what rounding to 8 bits takes
  double attention = 0;  // scores and their use
  double passes = 0;     // over activations: norms, rotation, gates, sums, dropout, embedding
  double head = 0;       // with the loss
  double optimizer = 0;
  double exchange = 0;  // between ranks, where nothing else is done
  double waiting = 0;   // for other stages of a pipeline

  double total() const {
    return products + attention + passes + head + optimizer + exchange + waiting;
  }
  StepTime& operator+=(const StepTime& other);
};
StepTime operator*(double factor, StepTime time);

/// Of the device that is planned for; nothing where its data sheet is not known. `layout` is of
/// `extents`. Local.
std::optional<StepTime> step_time(const deck::Deck& deck, const workload::Layout& layout,
                                  const comm::Extents& extents, const RowContents& contents,
                                  const PlannedDevice& device = {});

/// Tokens of the data a second, of all ranks.
std::optional<double> estimated_rate(const deck::Deck& deck, const workload::Layout& layout,
                                     const comm::Extents& extents, const RowContents& contents,
                                     const PlannedDevice& device = {});

}  // namespace tern::plan
