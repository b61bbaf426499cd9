#include "linear/precision.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "linear/detail/fp8_inference_map.hpp"
#include "linear/detail/fp8_training_map.hpp"

namespace tern::linear {

template <class T>
Precision<T>::Precision(const PrecisionOptions& options, const model::Parameters<T>& parameters,
                        Arena& arena)
    : options_(options), compute_(parameters.compute) {
  TERN_REQUIRE(!options.fp8_weights || !(options.trains || options.fp8 || parameters.full_sharding),
               "weights in fp8 of a model that trains, multiplies in fp8 or is fully sharded");
  workspace_.trains = options.trains;
  if (options.fp8 && options.trains)
    saturated_ = arena.vector<std::uint32_t>("fp8 saturated", Term::workspace, 1);
}

template <class T>
Map<T> Precision<T>::bind(const model::Linear<T>& p, const std::string& label) {
  if (options_.fp8) {
    maps_.push_back(std::make_shared<detail::Fp8TrainingMap<T>>(p, workspace_));
  } else if (options_.fp8_weights) {
    const auto [O, I] = std::pair(p.weight.extent(0), p.weight.extent(1));
    T* const weight = compute_.data() + (p.weight.data() - compute_.data());
    maps_.push_back(
        std::make_shared<detail::Fp8InferenceMap<T>>(p, as_matrix(weight, O, I), workspace_));
  } else {
    maps_.push_back(std::make_shared<LinearMap<T>>(p, workspace_));
  }
  labels_.push_back(label);
  return maps_.back();
}

template <class T>
std::size_t Precision<T>::weights() const {
  std::size_t sum = 0;
  for (const auto& map : maps_) sum += map->shape().inputs * map->shape().outputs;
  return sum;
}

template <class T>
void Precision<T>::request(Arena& arena, const PassSizes& sizes) {
  if (options_.fp8) request_fp8(arena, sizes);
  const bool rounded = options_.fp8 ? options_.trains && sizes.keeps_weights : options_.fp8_weights;
  for (std::size_t i = 0; rounded && i < maps_.size(); ++i)
    maps_[i]->request(arena, labels_[i] + "/fp8 weights", sizes.rows);
  std::size_t widest = 0;
  for (const auto& map : maps_) widest = std::max(widest, map->shape().inputs);
  if (options_.fp8_weights && options_.fp8_inputs && widest > 0)
    workspace_.coded_input = {arena, "fp8 input", Term::workspace, sizes.rows, widest};
}

template <class T>
void Precision<T>::request_fp8(Arena& arena, const PassSizes& sizes) {
  typename ops::Fp8Workspace<T>::Sizes largest;
  for (const auto& map : maps_)
    largest.raise(sizes.rows, map->shape().inputs, map->shape().outputs, options_.trains);
  const auto [I, O] = sizes.head;
  const bool of_head =
      options_.trains && sizes.head_rows > 0 && ops::fp8_takes(sizes.head_rows, I, O);
  if (of_head) largest.raise(sizes.head_rows, I, O, true);
  workspace_.fp8 = {arena, largest};
  if (of_head) head_ = {arena, workspace_.fp8, sizes.head_rows};
}

template <class T>
Scale Precision<T>::request_scale(Arena& arena, const std::string& label) const {
  if (!options_.fp8) return {};
  Scale scale(arena, label + "/scale", Term::activations);
  scale.saturated = saturated_;
  return scale;
}

template <class T>
void Precision<T>::refresh(const ops::Context& context) const {
  for (const auto& map : maps_) map->refresh(context);
}

template class Precision<float>;
template class Precision<double>;
template class Precision<bf16>;
template class Precision<fp16>;

}  // namespace tern::linear
