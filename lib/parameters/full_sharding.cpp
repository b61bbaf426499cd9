#include "parameters/full_sharding.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "ops/ops.hpp"

namespace tern::model {

template <class T>
FullSharding<T>::FullSharding(const ParameterTree& tree, Vector<T> compute, Vector<A> gradient,
                              comm::Group& group, Arena& arena)
    : group_(group), compute_(compute), gradient_(gradient) {
  const auto parts = static_cast<std::size_t>(group.size());
  std::size_t local = 0, layer = 0, longest = 0;
  for (const Unit& unit : tree.units()) {
    if (unit.layer >= 0) {
      layers_.push_back({unit, local, layer++ % layer_windows});
      longest = std::max(longest, unit.count);
    } else {
      kept_.push_back({unit, local, layer_windows + kept_.size()});
    }
    local += unit.count / parts;
  }
  const bool trains = gradient.extent(0) > 0;
  const auto add_window = [&](const std::string& name, const Vector<T>& values) {
    Window window;
    window.values = values;
    if (trains)
      window.gradients = arena.vector<A>("gradients of " + name, Term::gradients, values.extent(0));
    windows_.push_back(window);
  };
  layer_values_ = arena.matrix<T>("gathered layers", Term::parameters, layer_windows, longest);
  T* const first = layer_values_.data();
  for (std::size_t i = 0; i < layer_windows; ++i)
    add_window(fmt::format("layer {}", i),
               Vector<T>(first ? first + i * longest : nullptr, longest));
  for (const ShardedUnit& sharded : kept_) {
    const std::string name = fmt::format("unit at {}", sharded.unit.first);
    add_window(name, arena.vector<T>("gathered " + name, Term::parameters, sharded.unit.count));
  }
  if (trains && parts > 1 && parts <= comm::PartExchange::most_ranks)
    arrived_ = arena.tensor3<A>("other ranks' gradients", Term::gradients, layer_windows, parts - 1,
                                longest / parts);
  if (arena.measuring()) return;
  side_.emplace();
  values_exchange_ = group.part_exchange(layer_values_.data(), longest * sizeof(T));
  if (trains)
    gradients_exchange_ =
        group.part_exchange(arrived_.data(), arrived_.size() / layer_windows * sizeof(A));
}

template <class T>
const typename FullSharding<T>::ShardedUnit& FullSharding<T>::sharded_of(const Parameter& p) const {
  for (const std::vector<ShardedUnit>* units : {&layers_, &kept_})
    for (const ShardedUnit& sharded : *units)
      if (sharded.unit.contains(p.offset)) return sharded;
  TERN_REQUIRE(false, "'{}' is in no unit", p.name);
}

template <class T>
T* FullSharding<T>::compute_of(const Parameter& p) const {
  const ShardedUnit& sharded = sharded_of(p);
  T* data = windows_[sharded.window].values.data();
  return data ? data + (p.offset - sharded.unit.first) : nullptr;
}

template <class T>
typename FullSharding<T>::A* FullSharding<T>::gradient_of(const Parameter& p) const {
  const ShardedUnit& sharded = sharded_of(p);
  A* data = windows_[sharded.window].gradients.data();
  return data ? data + (p.offset - sharded.unit.first) : nullptr;
}

/// part(rank) for each other rank, from the next one on: no rank is sent to by two at a time.
template <class T>
template <class PartFor>
std::vector<comm::Part> FullSharding<T>::parts_for_others(const PartFor& part) const {
  std::vector<comm::Part> parts;
  const int ranks = group_.size();
  for (int distance = 1; distance < ranks; ++distance)
    parts.push_back(part((group_.rank() + distance) % ranks));
  return parts;
}

/// Copies this rank's part into the unit's window, in the side stream.
template <class T>
void FullSharding<T>::copy_own(const ShardedUnit& sharded) {
  const std::size_t count = part_of(sharded);
  T* values = windows_[sharded.window].values.data();
  const Vector<T> own(values + static_cast<std::size_t>(group_.rank()) * count, count);
  Kokkos::deep_copy(side_->context().space, own,
                    Vector<const T>(compute_.data() + sharded.local, count));
}

/// Gathers all parts into the unit's window, in the side stream.
template <class T>
void FullSharding<T>::gather(const ShardedUnit& sharded) {
  copy_own(sharded);
  group_.all_gather(windows_[sharded.window].values.data(), part_of(sharded) * sizeof(T),
                    side_->context());
}

/// The same for a layer, other ranks' parts by copies that unshard() awaits.
template <class T>
void FullSharding<T>::exchange_values(const ShardedUnit& layer) {
  const ops::Context& side = side_->context();
  Window& window = windows_[layer.window];
  if (window.exchanged) values_exchange_->release(layer.window, side);
  const std::size_t bytes = part_of(layer) * sizeof(T);
  const auto place_of = [&](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  const auto part = [&](int rank) {
    return comm::Part{rank, compute_.data() + layer.local, bytes, place_of(group_.rank()),
                      place_of(rank)};
  };
  values_exchange_->send(layer.window, parts_for_others(part), side);
  window.exchanged = true, window.awaited = false;
  copy_own(layer);
}

/// Adds the window's gradients, summed over ranks, to this rank's part.
template <class T>
void FullSharding<T>::sum(const ShardedUnit& sharded) {
  const ops::Context& side = side_->context();
  const std::size_t count = part_of(sharded);
  A* gradients = windows_[sharded.window].gradients.data();
  group_.reduce_scatter(gradients, count, side);
  const A* own = gradients + static_cast<std::size_t>(group_.rank()) * count;
  ops::add<A>(side, Matrix<const A>(own, 1, count),
              as_matrix(gradient_.data() + sharded.local, 1, count));
}

/// The same for a layer whose gradients the context's stream has computed.
template <class T>
void FullSharding<T>::exchange_gradients(const ops::Context& context, const ShardedUnit& layer) {
  const std::size_t count = part_of(layer), bytes = count * sizeof(A);
  const A* const computed = windows_[layer.window].gradients.data();
  // Senders in the order of ranks, without the receiver.
  const auto place_of = [&](int sender, int receiver) {
    return static_cast<std::size_t>(sender > receiver ? sender - 1 : sender) * bytes;
  };
  const auto part = [&](int rank) {
    return comm::Part{rank, computed + static_cast<std::size_t>(rank) * count, bytes,
                      place_of(group_.rank(), rank), place_of(rank, group_.rank())};
  };
  gradients_exchange_->send(layer.window, parts_for_others(part), context);
  gradients_exchange_->await(layer.window, side_->context());
  add_parts(layer);
  gradients_exchange_->release(layer.window, side_->context());
}

/// Adds all ranks' gradients for this rank's part to it, two at a time.
template <class T>
void FullSharding<T>::add_parts(const ShardedUnit& layer) {
  const ops::Context& side = side_->context();
  const std::size_t count = part_of(layer);
  const auto row = [&](A* data) { return as_matrix(data, 1, count); };
  const Matrix<A> sums = row(gradient_.data() + layer.local);
  std::vector<Matrix<A>> addends{row(windows_[layer.window].gradients.data() +
                                     static_cast<std::size_t>(group_.rank()) * count)};
  A* const arrived = arrived_.data() + layer.window * (arrived_.size() / layer_windows);
  for (std::size_t i = 0; i < arrived_.extent(1); ++i) addends.push_back(row(arrived + i * count));
  for (std::size_t i = 0; i + 1 < addends.size(); i += 2)
    ops::sum<A>(side, addends[i], addends[i + 1], sums, sums);
  if (addends.size() % 2 == 1) ops::add<A>(side, addends.back(), sums);
}

template <class T>
void FullSharding<T>::invalidate(const ops::Context& context) {
  for (Window& window : windows_) window.layer = -1;
  last_ = -1;
  used_.set(context);
  used_.await(side_->context());
  for (const ShardedUnit& sharded : kept_) gather(sharded);
  finished_.set(side_->context());
  finished_.await(context);
}

template <class T>
void FullSharding<T>::gather_layer(const ops::Context& context, std::size_t layer) {
  Window& window = window_of(layer);
  if (window.layer == static_cast<std::int64_t>(layer)) return;
  used_.set(context);  // after the last use of the layer that was there
  used_.await(side_->context());
  values_exchange_ ? exchange_values(layers_[layer]) : gather(layers_[layer]);
  window.gathered.set(side_->context());
  window.layer = static_cast<std::int64_t>(layer);
}

template <class T>
void FullSharding<T>::unshard(const ops::Context& context, std::size_t layer) {
  const auto number = static_cast<std::int64_t>(layer);
  if (last_ == number) return;
  gather_layer(context, layer);
  Window& window = window_of(layer);
  window.gathered.await(context);
  if (window.exchanged && !window.awaited) values_exchange_->await(layers_[layer].window, context);
  window.awaited = true;
  // Layers ascend in forward, descend in backward; a pass starts where the last ended, or at 0.
  const std::int64_t next = layer == 0 || number > last_ ? number + 1 : number - 1;
  last_ = number;
  if (next < static_cast<std::int64_t>(layers_.size()))
    gather_layer(context, static_cast<std::size_t>(next));
}

template <class T>
void FullSharding<T>::zero_gradients(const ops::Context& context) const {
  Kokkos::deep_copy(context.space, gradient_, A(0));
  for (const Window& window : windows_) Kokkos::deep_copy(context.space, window.gradients, A(0));
}

template <class T>
void FullSharding<T>::begin_gradients(const ops::Context& context, std::size_t layer) {
  window_of(layer).summed.await(context);
}

template <class T>
void FullSharding<T>::end_gradients(const ops::Context& context, std::size_t layer) {
  used_.set(context);
  used_.await(side_->context());
  if (gradients_exchange_)
    exchange_gradients(context, layers_[layer]);
  else
    sum(layers_[layer]);
  Window& window = window_of(layer);
  if (zeroes_) Kokkos::deep_copy(side_->context().space, window.gradients, A(0));
  window.summed.set(side_->context());
}

template <class T>
void FullSharding<T>::finish_gradients(const ops::Context& context) {
  used_.set(context);
  used_.await(side_->context());
  for (const ShardedUnit& sharded : kept_) sum(sharded);
  finished_.set(side_->context());
  finished_.await(context);
}

template class FullSharding<float>;
template class FullSharding<double>;
template class FullSharding<bf16>;
template class FullSharding<fp16>;

}  // namespace tern::model
