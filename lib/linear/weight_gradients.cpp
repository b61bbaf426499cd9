#include "linear/weight_gradients.hpp"

#include <algorithm>

namespace tern::linear {

template <class T>
void WeightGradients<T>::add(const ops::Context& context, const Map<T>& map,
                             const MapGradient<T>& dy, const MapInput<T>& x) {
  add(context, map, BranchGradient<T>{dy, dy.values}, x);
}

template <class T>
void WeightGradients<T>::add(const ops::Context& context, const Map<T>& map,
                             const BranchGradient<T>& dy, const MapInput<T>& x) {
  const Entry entry{map, dy, x};
  if (when_ == When::at_once)
    entry.run(context);
  else
    queue_.push_back(entry);
}

/// The latest first: its operands may still be in caches.
template <class T>
void WeightGradients<T>::run(const ops::Context& context) {
  if (later()) return;
  std::for_each(queue_.rbegin(), queue_.rend(), [&](const Entry& entry) { entry.run(context); });
  queue_.clear();
}

template <class T>
void WeightGradients<T>::run_later(const ops::Context& context) {
  for (const auto& [map, dy, x] : queue_) {
    if (dy.in_workspace()) ops::dropout<T>(context, dy.dropout, dy.stream, {}, dy.dy.values);
    map->weight_gradient(context, dy.dy, x);
  }
  queue_.clear();
}

template class WeightGradients<float>;
template class WeightGradients<double>;
template class WeightGradients<bf16>;
template class WeightGradients<fp16>;

}  // namespace tern::linear
