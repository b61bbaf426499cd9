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
  AdamW(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Range owned,
        Arena& arena)
      : optimizer_(optimizer),
        owned_(owned),
        decayed_(std::clamp(tree.decayed(), owned.first, owned.first + owned.count) - owned.first),
        first_(arena.vector<A>("exp_avg", Term::optimizer, owned.count)),
        second_(arena.vector<A>("exp_avg_sq", Term::optimizer, owned.count)) {}

  void apply(const ops::Context& context, const model::Parameters<T>& parameters,
             Vector<const A> scale, double rate, std::int64_t step) override {
    update(context, parameters, scale, rate, step, 0, decayed_, optimizer_.weight_decay);
    update(context, parameters, scale, rate, step, decayed_, owned_.count, 0);
  }

  std::vector<State<T>> states() const override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }

 private:
  /// [begin, end) of the owned range.
  void update(const ops::Context& context, const model::Parameters<T>& parameters,
              Vector<const A> scale, double rate, std::int64_t step, std::size_t begin,
              std::size_t end, double decay) const {
    if (begin == end) return;
    const auto local = Kokkos::make_pair(begin, end);
    const auto global = Kokkos::make_pair(owned_.first + begin, owned_.first + end);
    const ops::AdamW rule{rate, optimizer_.betas[0], optimizer_.betas[1], optimizer_.eps, decay,
                          step};
    ops::adamw_update<T>(context, rule, Kokkos::subview(parameters.master, global),
                         Kokkos::subview(parameters.gradient, global), scale,
                         Kokkos::subview(first_, local), Kokkos::subview(second_, local),
                         Kokkos::subview(parameters.compute, global));
  }

  deck::Optimizer optimizer_;
  Range owned_;
  std::size_t decayed_;  // elements of the owned range that are matrices
  Vector<A> first_, second_;
};

}  // namespace tern::optimizer
