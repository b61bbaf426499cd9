#include "parameters/full_sharding.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "ops/ops.hpp"

namespace tern::model {
namespace {

constexpr std::size_t layer_windows = 2;

}  // namespace

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
  const auto add_window = [&](const std::string& name, std::size_t count) {
    Window window;
    window.values = arena.vector<T>("gathered " + name, Term::parameters, count);
    if (gradient.extent(0) > 0)
      window.gradients = arena.vector<A>("gradients of " + name, Term::gradients, count);
    windows_.push_back(window);
  };
  for (std::size_t i = 0; i < layer_windows; ++i) add_window(fmt::format("layer {}", i), longest);
  for (const Resident& resident : kept_)
    add_window(fmt::format("unit at {}", resident.unit.first), resident.unit.count);
  if (!arena.measuring()) side_.emplace();
}

template <class T>
const typename FullSharding<T>::Resident& FullSharding<T>::resident_of(const Parameter& p) const {
  for (const std::vector<Resident>* residents : {&layers_, &kept_})
    for (const Resident& resident : *residents)
      if (resident.unit.contains(p.offset)) return resident;
  TERN_REQUIRE(false, "'{}' is in no unit", p.name);
}

template <class T>
T* FullSharding<T>::compute_of(const Parameter& p) const {
  const Resident& resident = resident_of(p);
  T* data = windows_[resident.window].values.data();
  return data ? data + (p.offset - resident.unit.first) : nullptr;
}

template <class T>
typename FullSharding<T>::A* FullSharding<T>::gradient_of(const Parameter& p) const {
  const Resident& resident = resident_of(p);
  A* data = windows_[resident.window].gradients.data();
  return data ? data + (p.offset - resident.unit.first) : nullptr;
}

/// Gathers all parts into the unit's window, in the side stream.
template <class T>
void FullSharding<T>::gather(const Resident& resident) {
  const ops::Context& side = side_->context();
  const std::size_t count = resident.unit.count / static_cast<std::size_t>(group_.size());
  T* values = windows_[resident.window].values.data();
  const Vector<T> own(values + static_cast<std::size_t>(group_.rank()) * count, count);
  Kokkos::deep_copy(side.space, own, Vector<const T>(compute_.data() + resident.local, count));
  group_.all_gather(values, count * sizeof(T), side);
}

/// Adds the window's gradients, summed over ranks, to this rank's part.
template <class T>
void FullSharding<T>::sum(const Resident& resident) {
  const ops::Context& side = side_->context();
  const std::size_t count = resident.unit.count / static_cast<std::size_t>(group_.size());
  A* gradients = windows_[resident.window].gradients.data();
  group_.reduce_scatter(gradients, count, side);
  const A* own = gradients + static_cast<std::size_t>(group_.rank()) * count;
  ops::add<A>(side, Matrix<const A>(own, 1, count),
              as_matrix(gradient_.data() + resident.local, 1, count));
}

template <class T>
void FullSharding<T>::renew(const ops::Context& context) {
  for (Window& window : windows_) window.layer = -1;
  last_ = -1;
  used_.set(context);
  used_.await(side_->context());
  for (const Resident& resident : kept_) gather(resident);
  finished_.set(side_->context());
  finished_.await(context);
}

template <class T>
void FullSharding<T>::gather_layer(const ops::Context& context, std::size_t layer) {
  Window& window = window_of(layer);
  if (window.layer == static_cast<std::int64_t>(layer)) return;
  used_.set(context);  // after the last use of the layer that was there
  used_.await(side_->context());
  gather(layers_[layer]);
  window.gathered.set(side_->context());
  window.layer = static_cast<std::int64_t>(layer);
}

template <class T>
void FullSharding<T>::need(const ops::Context& context, std::size_t layer) {
  const auto number = static_cast<std::int64_t>(layer);
  if (last_ == number) return;
  gather_layer(context, layer);
  window_of(layer).gathered.await(context);
  // Layers ascend in forward, descend in backward; a pass starts where the last ended, or at 0.
  const std::int64_t next = layer == 0 || number > last_ ? number + 1 : number - 1;
  last_ = number;
  if (next < static_cast<std::int64_t>(layers_.size()))
    gather_layer(context, static_cast<std::size_t>(next));
}

template <class T>
void FullSharding<T>::zero_gradients(const ops::Context& context) const {
  Kokkos::deep_copy(context.space, gradient_, A(0));
  for (const Resident& resident : kept_)
    Kokkos::deep_copy(context.space, windows_[resident.window].gradients, A(0));
}

template <class T>
void FullSharding<T>::begin_gradients(const ops::Context& context, std::size_t layer) {
  Window& window = window_of(layer);
  window.summed.await(context);
  Kokkos::deep_copy(context.space, window.gradients, A(0));
}

template <class T>
void FullSharding<T>::end_gradients(const ops::Context& context, std::size_t layer) {
  used_.set(context);
  used_.await(side_->context());
  sum(layers_[layer]);
  window_of(layer).summed.set(side_->context());
}

template <class T>
void FullSharding<T>::finish_gradients(const ops::Context& context) {
  used_.set(context);
  used_.await(side_->context());
  for (const Resident& resident : kept_) sum(resident);
  finished_.set(side_->context());
  finished_.await(context);
}

template class FullSharding<float>;
template class FullSharding<double>;
template class FullSharding<bf16>;
template class FullSharding<fp16>;

}  // namespace tern::model
