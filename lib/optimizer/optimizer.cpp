#include "optimizer/optimizer.hpp"

#include <cmath>

#include "base/error.hpp"
#include "ops/ops.hpp"
#include "parameters/full_sharding.hpp"

namespace tern::optimizer {

Range owned_range(const std::string& shard, std::size_t length, int rank, int ranks) {
  if (shard == "none" || shard == "full") return {0, length};
  const auto parts = static_cast<std::size_t>(ranks);
  TERN_REQUIRE(length % parts == 0, "a span of {} in {} parts", length, parts);
  return {static_cast<std::size_t>(rank) * (length / parts), length / parts};
}

template <class T>
Optimizer<T>::Optimizer(const deck::Deck& deck, const model::ParameterTree& tree,
                        const model::Parameters<T>& parameters, comm::Group& group, Arena& arena)
    : tree_(tree),
      parameters_(parameters),
      group_(group),
      clip_(deck.optimizer.grad_clip),
      owned_(owned_range(deck.parallel.shard, parameters.master.extent(0), group.rank(),
                         group.size())),
      update_(make_update<T>(deck.optimizer, tree, owned_,
                             tree.decayed() / (tree.span() / parameters.master.extent(0)), arena)),
      ema_(deck.optimizer.ema > 0 ? std::optional<Ema<T>>(std::in_place, deck.optimizer.ema,
                                                          Range{0, tree.span()}, owned_, arena)
                                  : std::nullopt),
      partial_squares_(
          arena.vector<A>("squares of ranges", Term::workspace, tree.counted().size())),
      squares_(arena.vector<A>("gradient squares", Term::workspace, 1)),
      scale_(arena.vector<A>("gradient scale", Term::workspace, 1)),
      norm_(arena.vector<A>("gradient norm", Term::workspace, 1)) {
  for (const Range& counted : tree.counted())
    if (const Range held = common(counted, owned_); held.count > 0) counted_.push_back(held);
}

template <class T>
void Optimizer<T>::zero_gradients(const ops::Context& context) const {
  if (parameters_.full_sharding) return parameters_.full_sharding->zero_gradients(context);
  Kokkos::deep_copy(context.space, parameters_.gradient, A(0));
}

template <class T>
void Optimizer<T>::reduce_gradients(const ops::Context& context) const {
  parameters_.complete_gradients(context, tree_);
  if (group_.size() == 1) return;
  if (parameters_.full_sharding) return parameters_.full_sharding->finish_gradients(context);
  if (sharded())
    group_.reduce_scatter(parameters_.gradient.data(), owned_.count, context);
  else
    group_.all_reduce(parameters_.gradient.data(), owned_.count, context);
}

template <class T>
typename Optimizer<T>::Outcome Optimizer<T>::update(const ops::Context& context, double rate,
                                                    std::int64_t update_number, double loss_scale) {
  sum_squares(context);
  ops::clip_scale<A>(context, squares_, clip_, loss_scale, scale_, norm_);
  update_->apply(context, parameters_, scale_, rate, update_number);
  A norm = 0;
  Kokkos::deep_copy(context.space, Kokkos::View<A, Kokkos::HostSpace, Unmanaged>(&norm),
                    Kokkos::View<A, DeviceMemory, Unmanaged>(norm_.data()));
  context.fence("optimizer update");
  if (ema_ && std::isfinite(norm)) ema_->update(context, weights(), update_number);
  return {static_cast<double>(norm), std::isfinite(norm)};
}

/// squares_ (1): of the whole model's gradient, each element once.
template <class T>
void Optimizer<T>::sum_squares(const ops::Context& context) const {
  Kokkos::deep_copy(context.space, squares_, A(0));
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    const Range& r = counted_[i];
    ops::sum_of_squares<A>(context, Vector<const A>(parameters_.gradient.data() + r.first, r.count),
                           Vector<A>(partial_squares_.data() + i, 1));
  }
  if (!counted_.empty())
    ops::weighted_sum<A>(context, Vector<const A>(partial_squares_.data(), counted_.size()), {},
                         squares_);
  const comm::Mesh* mesh = tree_.share().mesh;
  const bool divided = mesh && mesh->replica().size() > 1;
  if (!sharded() && !divided) return;
  if (sharded()) group_.all_reduce(squares_.data(), 1, context);
  if (divided) mesh->replica().all_reduce(squares_.data(), 1, context);
}

/// The owned range of the masters.
template <class T>
Vector<typename Optimizer<T>::A> Optimizer<T>::weights() const {
  return Kokkos::subview(parameters_.master,
                         Kokkos::make_pair(owned_.first, owned_.first + owned_.count));
}

template <class T>
void Optimizer<T>::start_average(const ops::Context& context) const {
  if (ema_) ema_->start(context, weights());
}

template <class T>
void Optimizer<T>::exchange_average(const ops::Context& context) const {
  if (!ema_) return;
  ema_->exchange(context, weights());
  if constexpr (!std::is_same_v<T, A>)
    ops::convert<A, T>(context, weights(),
                       Vector<T>(parameters_.compute.data() + owned_.first, owned_.count));
  gather_parameters(context);
}

template <class T>
std::vector<State<T>> Optimizer<T>::states() const {
  std::vector<State<T>> states = update_->states();
  if (ema_) states.push_back(ema_->state());
  return states;
}

template <class T>
void Optimizer<T>::gather_parameters(const ops::Context& context) const {
  if (parameters_.full_sharding) return parameters_.full_sharding->invalidate(context);
  if (!sharded()) return;
  group_.all_gather(parameters_.compute.data(), owned_.count * sizeof(T), context);
}

template class Optimizer<float>;
template class Optimizer<bf16>;
template class Optimizer<fp16>;
template class Optimizer<double>;

}  // namespace tern::optimizer
