#include "parameters/binder.hpp"

#include "base/error.hpp"
#include "parameters/full_sharding.hpp"

namespace tern::model {
namespace {

/// Elements of the named parameters, which must be contiguous.
std::size_t adjacent_count(const ParameterTree& tree, const std::vector<std::string>& modules,
                           const char* kind) {
  std::size_t count = 0;
  const std::size_t first = tree.at(modules.front() + kind).offset;
  for (const std::string& module : modules) {
    const Parameter& p = tree.at(module + kind);
    TERN_REQUIRE(p.offset == first + count, "'{}' does not follow the parameter it is fused with",
                 p.name);
    count += p.count;
  }
  return count;
}

}  // namespace

template <class T>
Vector<const T> Binder<T>::values(const std::string& name, std::size_t count) const {
  const Parameter& p = tree_.at(name);
  if (parameters_.full_sharding)
    return Vector<const T>(parameters_.full_sharding->compute_of(p), count);
  const T* span = parameters_.compute.data();
  return Vector<const T>(span ? span + p.offset : nullptr, count);
}

template <class T>
Vector<Accumulate<T>> Binder<T>::gradients(const std::string& name, std::size_t count) const {
  if (parameters_.gradient.extent(0) == 0) return {};
  const Parameter& p = tree_.at(name);
  if (parameters_.full_sharding)
    return Vector<Accumulate<T>>(parameters_.full_sharding->gradient_of(p), count);
  Accumulate<T>* span = parameters_.gradient.data();
  return Vector<Accumulate<T>>(span ? span + p.offset : nullptr, count);
}

template <class T>
Linear<T> Binder<T>::linear(const std::vector<std::string>& modules) const {
  const std::string first = modules.front() + "/weight";
  const std::size_t count = adjacent_count(tree_, modules, "/weight");
  const std::size_t inputs = tree_.at(first).shape[1], outputs = count / inputs;
  Linear<T> result;
  result.weight = as_matrix(values(first, count).data(), outputs, inputs);
  if (parameters_.gradient.extent(0) > 0)
    result.dweight = as_matrix(gradients(first, count).data(), outputs, inputs);
  if (tree_.has(modules.front() + "/bias")) {
    const std::size_t biases = adjacent_count(tree_, modules, "/bias");
    TERN_REQUIRE(biases == outputs, "{} biases for {} outputs of '{}'", biases, outputs, first);
    result.bias = values(modules.front() + "/bias", biases);
    result.dbias = gradients(modules.front() + "/bias", biases);
  }
  return result;
}

template <class T>
Linear<T> Binder<T>::summed(const std::string& module) const {
  Linear<T> result = linear({module});
  if (tree_.share().tensor > 0) result.bias = {};
  return result;
}

template <class T>
GroupedLinear<T> Binder<T>::grouped(const std::string& at, std::size_t experts,
                                    const std::vector<std::string>& modules) const {
  const auto expert = [&](std::size_t e) {
    std::vector<std::string> names;
    for (const std::string& module : modules)
      names.push_back(fmt::format("{}/{}/{}", at, e, module));
    return names;
  };
  const auto offset = [&](std::size_t e) { return tree_.at(expert(e).front() + "/weight").offset; };
  const Linear<T> first = linear(expert(0));
  const std::size_t outputs = first.weight.extent(0), inputs = first.weight.extent(1);
  const std::size_t stride = experts > 1 ? offset(1) - offset(0) : outputs * inputs;
  for (std::size_t e = 1; e < experts; ++e) {
    adjacent_count(tree_, expert(e), "/weight");
    TERN_REQUIRE(offset(e) == offset(0) + e * stride, "'{}' does not follow expert {}'s",
                 expert(e).front(), e - 1);
  }
  return {{first.weight.data(), experts, outputs, inputs, stride},
          {first.dweight.data(), experts, outputs, inputs, stride}};
}

template <class T>
Gain<T> Binder<T>::gain(const std::string& module) const {
  Gain<T> result;
  const std::string weight = module + "/weight", bias = module + "/bias";
  if (!tree_.has(weight)) return result;
  const std::size_t width = tree_.at(weight).count;
  result.gain = values(weight, width);
  result.dgain = gradients(weight, width);
  if (tree_.has(bias)) {
    result.bias = values(bias, width);
    result.dbias = gradients(bias, width);
  }
  return result;
}

template <class T>
std::pair<Vector<const T>, Vector<Accumulate<T>>> Binder<T>::vector(const std::string& name) const {
  const std::size_t count = tree_.at(name).count;
  return {values(name, count), gradients(name, count)};
}

template class Binder<float>;
template class Binder<double>;
template class Binder<bf16>;
template class Binder<fp16>;

}  // namespace tern::model
