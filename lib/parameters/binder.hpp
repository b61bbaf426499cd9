/// Views of parameters and gradients in the spans of Parameters.
#pragma once
#include <string>

#include "ops/ops.hpp"
#include "parameters/parameters.hpp"

namespace tern::model {

/// A linear map, possibly several fused along the outputs. bias and the gradients may be empty.
template <class T>
struct Linear {
  Matrix<const T> weight;         // (O, I)
  Vector<const T> bias;           // (O)
  Matrix<Accumulate<T>> dweight;  // (O, I)
  Vector<Accumulate<T>> dbias;    // (O)
};

/// One map per expert, without biases.
template <class T>
struct GroupedLinear {
  ops::Grouped<const T> weight;         // (O, I) each
  ops::Grouped<Accumulate<T>> dweight;  // empty without gradients
};

template <class T>
struct Gain {
  Vector<const T> gain, bias;          // (D)
  Vector<Accumulate<T>> dgain, dbias;  // (D)
};

/// Cuts views out of the spans. Views of a gain or bias that the tree lacks are empty.
template <class T>
class Binder {
 public:
  Binder(const ParameterTree& tree, const Parameters<T>& parameters)
      : tree_(tree), parameters_(parameters) {}

  /// The map fused from the named modules ("model/layers/0/self_attn/q_proj"), which are adjacent.
  Linear<T> linear(const std::vector<std::string>& modules) const;
  /// A map whose outputs are summed over tensor ranks; only the first one has the bias.
  Linear<T> summed(const std::string& module) const;
  /// The maps of all experts at AT/0/, AT/1/, ..., each fused from the named modules.
  GroupedLinear<T> grouped(const std::string& at, std::size_t experts,
                           const std::vector<std::string>& modules) const;
  Gain<T> gain(const std::string& module) const;
  /// A parameter by its full name, and its gradient.
  std::pair<Vector<const T>, Vector<Accumulate<T>>> vector(const std::string& name) const;

 private:
  Vector<const T> values(const std::string& name, std::size_t count) const;
  Vector<Accumulate<T>> gradients(const std::string& name, std::size_t count) const;

  const ParameterTree& tree_;
  const Parameters<T>& parameters_;
};

}  // namespace tern::model
