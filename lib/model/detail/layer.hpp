/// Views of one layer's parameters and gradients in the spans of Parameters.
#pragma once
#include <string>

#include "model/parameters.hpp"
#include "ops/ops.hpp"

namespace tern::model::detail {

/// A linear map, possibly several fused along the outputs. bias and the gradients may be empty.
template <class T>
struct Linear {
  Matrix<const T> weight;         // (O, I)
  Vector<const T> bias;           // (O)
  Matrix<Accumulate<T>> dweight;  // (O, I)
  Vector<Accumulate<T>> dbias;    // (O)
};

/// The same map of each expert, without biases.
template <class T>
struct GroupedLinear {
  ops::Grouped<const T> weight;         // (O, I) each
  ops::Grouped<Accumulate<T>> dweight;  // empty where there are no gradients
};

template <class T>
struct Gain {
  Vector<const T> gain, bias;          // (D)
  Vector<Accumulate<T>> dgain, dbias;  // (D)
};

template <class T>
struct Layer {
  Gain<T> norm_attention, norm_ffn;
  Linear<T> qkv, output;                    // ((H + 2K) E, D), (D, H E)
  Gain<T> norm_q, norm_k;                   // (E), empty without q/k norm
  Linear<T> up, down;                       // (2F or F, D), (D, F); empty with experts:
  Linear<T> router;                         // (X, D)
  GroupedLinear<T> expert_up, expert_down;  // (2F, D), (D, F)
};

/// Cuts views out of the spans. A view of something the tree lacks is empty.
template <class T>
class Binder {
 public:
  Binder(const ParameterTree& tree, const Parameters<T>& parameters)
      : tree_(tree), parameters_(parameters) {}

  /// The map made of the named modules ("model/layers/0/self_attn/q_proj"), which lie side by side.
  Linear<T> linear(const std::vector<std::string>& modules) const;
  /// The maps of all experts at AT/0/, AT/1/, ..., each made of the named modules.
  GroupedLinear<T> grouped(const std::string& at, std::size_t experts,
                           const std::vector<std::string>& modules) const;
  Gain<T> gain(const std::string& module) const;
  /// A parameter by its whole name, and its gradient.
  std::pair<Vector<const T>, Vector<Accumulate<T>>> vector(const std::string& name) const;
  Layer<T> layer(const deck::Model& model, std::size_t index) const;

 private:
  Vector<const T> values(const std::string& name, std::size_t count) const;
  Vector<Accumulate<T>> gradients(const std::string& name, std::size_t count) const;

  const ParameterTree& tree_;
  const Parameters<T>& parameters_;
};

}  // namespace tern::model::detail
