/// AdamW (Loshchilov & Hutter 2019), decay on matrices only.
#pragma once
#include <algorithm>

#include "ops/ops.hpp"
#include "optimizer/update.hpp"

namespace tern::optimizer {

template <class T>
class AdamW : public Update<T> {
  using A = Accumulate<T>;

 public:
  /// Updates those parameters of `covered` that this rank owns. The first `decayed` elements of the
  /// rank's arrays belong to matrices.
  AdamW(const deck::Optimizer& optimizer, Range covered, Range owned, std::size_t decayed,
        Arena& arena)
      : optimizer_(optimizer),
        covered_(covered),
        held_(common(covered, owned)),
        decayed_(std::clamp(decayed, held_.first, held_.end()) - held_.first),
        first_(arena.vector<A>("exp_avg", Term::optimizer, held_.count)),
        second_(arena.vector<A>("exp_avg_sq", Term::optimizer, held_.count)) {}

  void apply(const ops::Context& context, const model::Parameters<T>& parameters,
             Vector<const A> scale, double rate, std::int64_t step) override {
    update(context, parameters, scale, rate, step, 0, decayed_, optimizer_.weight_decay);
    update(context, parameters, scale, rate, step, decayed_, held_.count, 0);
  }

  std::vector<State<T>> states() const override {
    return {{"exp_avg", covered_, held_, first_}, {"exp_avg_sq", covered_, held_, second_}};
  }

 private:
  /// [begin, end) of the held range.
  void update(const ops::Context& context, const model::Parameters<T>& parameters,
              Vector<const A> scale, double rate, std::int64_t step, std::size_t begin,
              std::size_t end, double decay) const {
    if (begin == end) return;
    const auto local = Kokkos::make_pair(begin, end);
    const auto global = Kokkos::make_pair(held_.first + begin, held_.first + end);
    const ops::AdamW rule{rate, optimizer_.betas[0], optimizer_.betas[1], optimizer_.eps, decay,
                          step};
    ops::adamw_update<T>(context, {.rule = rule,
                                   .master = Kokkos::subview(parameters.master, global),
                                   .gradient = Kokkos::subview(parameters.gradient, global),
                                   .gradient_scale = scale,
                                   .m = Kokkos::subview(first_, local),
                                   .v = Kokkos::subview(second_, local),
                                   .copy = Kokkos::subview(parameters.compute, global)});
  }

  deck::Optimizer optimizer_;
  Range covered_, held_;
  std::size_t decayed_;  // matrix elements in the held range
  Vector<A> first_, second_;
};

}  // namespace tern::optimizer
