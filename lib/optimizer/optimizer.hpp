/// Optimizer step from all ranks' gradients to the next parameters: sum, clip, update, and gather
/// if the states are sharded.
///
/// shard = 'none': every rank holds all states and updates all parameters; gradients are
/// all-reduced. shard = 'optimizer': rank r holds the states of the r-th of `ranks` equal parts of
/// the span, with whole matrices if the update needs them; gradients are reduce-scattered, the
/// updated compute values all-gathered (ZeRO stage 1, Rajbhandari et al. 2020). shard = 'full':
/// each rank holds only its part of parameters, gradients and states (parameters/full_sharding.hpp).
#pragma once
#include <optional>
#include "comm/comm.hpp"

#include "optimizer/ema.hpp"
#include "optimizer/update.hpp"

namespace tern::optimizer {

template <class T>
class Optimizer {
  using A = Accumulate<T>;

 public:
  /// `group`: the ranks that hold the same share of the model. `tree` has `group.size()` parts and
  /// division(deck).
  Optimizer(const deck::Deck& deck, const model::ParameterTree& tree,
            const model::Parameters<T>& parameters, comm::Group& group, Arena& arena);

  /// Zeroes the gradients, before the first micro-batch of a step.
  void zero_gradients(const ops::Context&) const;
  /// Sums gradients over ranks; afterwards the owned range holds the sum. Collective over all
  /// ranks.
  void reduce_gradients(const ops::Context&) const;
  /// Clips to the global norm and updates the owned range; if the norm is not finite, nothing
  /// changes. The gradients are `loss_scale` times too large. Fences; collective.
  struct Outcome {
    double gradient_norm;  // before clipping, unscaled
    bool applied;
  };
  Outcome update(const ops::Context&, double rate, std::int64_t update_number,
                 double loss_scale = 1);
  /// All-gathers the updated parameters. Collective.
  void gather_parameters(const ops::Context&) const;

  /// Starts the weights' average at the current weights; before the first update.
  void start_average(const ops::Context&) const;
  /// Exchanges every rank's parameters with the average, if one is kept; a second call undoes it.
  /// Collective.
  void exchange_average(const ops::Context&) const;

  Range owned() const { return owned_; }
  std::vector<State<T>> states() const;

 private:
  Vector<A> weights() const;
  void sum_squares(const ops::Context&) const;
  bool sharded() const {
    return parameters_.full_sharding || owned_.count != parameters_.gradient.extent(0);
  }

  const model::ParameterTree& tree_;
  const model::Parameters<T>& parameters_;
  comm::Group& group_;
  double clip_;
  Range owned_;
  std::unique_ptr<Update<T>> update_;
  std::optional<Ema<T>> ema_;
  std::vector<Range> counted_;  // what this rank counts of the owned range: each parameter once
  Vector<A> partial_squares_;   // their sums of squares
  Vector<A> squares_, scale_, norm_;  // (1)
};

/// Part of a span of `length` whose states `rank` holds.
Range owned_range(const std::string& shard, std::size_t length, int rank, int ranks);

}  // namespace tern::optimizer
