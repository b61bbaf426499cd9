/// Exponential moving average of the weights, for evaluation and sampling: average <- d average +
/// (1 - d) weights after each update, with d = min(decay, (1 + n) / (10 + n)) at update n, so that
/// the first weights decay fast.
#pragma once
#include <algorithm>

#include "ops/ops.hpp"
#include "optimizer/update.hpp"

namespace tern::optimizer {

template <class T>
class Ema {
  using A = Accumulate<T>;

 public:
  Ema(double decay, Range span, Range owned, Arena& arena)
      : decay_(decay),
        span_(span),
        owned_(owned),
        average_(arena.vector<A>("ema", Term::optimizer, owned.count)) {}

  /// `weights`: the owned range of the masters.
  void start(const ops::Context& context, Vector<const A> weights) const {
    Kokkos::deep_copy(context.space, average_, weights);
  }
  void update(const ops::Context& context, Vector<const A> weights, std::int64_t number) const {
    const double n = static_cast<double>(number);
    ops::move_average<A>(context, std::min(decay_, (1 + n) / (10 + n)), weights, average_);
  }
  /// Swaps average and weights; a second call undoes it.
  void exchange(const ops::Context& context, Vector<A> weights) const {
    ops::exchange<A>(context, weights, average_);
  }
  State<T> state() const { return {"ema", span_, owned_, average_}; }

 private:
  double decay_;
  Range span_, owned_;
  Vector<A> average_;
};

}  // namespace tern::optimizer
