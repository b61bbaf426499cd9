/// A linear map y = x w^T + bias of a block, possibly several modules fused along the outputs. It
/// knows its precision, which is chosen when it is bound (precision.hpp): this class multiplies in
/// T, and each other precision is a class derived from it.
#pragma once
#include <memory>

#include "linear/operand.hpp"
#include "parameters/binder.hpp"

namespace tern::linear {

/// Shared by the maps of a model.
template <class T>
struct MapWorkspace {
  bool trains = true;  // a backward pass follows
  /// Gradients of weights: `overwrite` if those of each pass are summed over ranks separately.
  ops::Write weight_gradients = ops::Write::add;
  ops::Fp8Workspace<T> fp8;  // of Fp8TrainingMap
  ops::Fp8Rows coded_input;  // of Fp8InferenceMap; none: inputs stay in T
};

/// Products that an input is read by.
enum class Use { forward, weight_gradient };

/// Gradient through an activation between two maps.
template <class T>
struct ActivationBackward {
  Activation activation;
  Matrix<T> up;          // (N, F), or (N, 2F) if gated: the activation's input
  Matrix<T> dactivated;  // (N, F), workspace
  Matrix<T> dup;         // shaped as `up`; it may be `up` or, unless gated, dactivated
};

template <class T>
class LinearMap {
  using A = Accumulate<T>;

 public:
  /// `workspace` must outlive it.
  LinearMap(const model::Linear<T>& parameters, const MapWorkspace<T>& workspace)
      : p_(parameters), workspace_(workspace) {}
  virtual ~LinearMap() = default;

  MapShape shape() const { return {p_.weight.extent(1), p_.weight.extent(0)}; }

  /// Requests what the precision keeps per map, for passes of `rows`.
  virtual void request(Arena&, const std::string& /*label*/, std::size_t /*rows*/) {}
  /// Call when the weights have changed.
  virtual void refresh(const ops::Context&) const {}

  // Operands: views in which an operation is to leave its result.
  /// An input that only this map needs, kept for backward in `memory` (N, I).
  virtual MapInput<T> saved_input(Matrix<T> memory, const Scale&) const { return {memory}; }
  /// An input whose values (N, I) are kept.
  virtual MapInput<T> input(Matrix<T> values, const Scale&, Use) const { return {values}; }
  virtual MapGradient<T> gradient(Matrix<T> values, const Scale&) const { return {values}; }

  /// y (N, O) = added + map(x); `added` may be y, or empty.
  virtual void forward(const ops::Context&, const MapInput<T>& x, Matrix<T> y,
                       Matrix<const T> added = {}) const;
  /// up = map(x), y = activation(up), which is an input of another map. Without a backward pass `up`
  /// is a workspace.
  virtual void forward(const ops::Context&, Activation, const MapInput<T>& x, Matrix<T> up,
                       const MapInput<T>& y) const;
  /// dx (N, I) from dy (N, O).
  virtual void input_gradient(const ops::Context&, const MapGradient<T>& dy, Matrix<T> dx) const;
  /// The gradient of the activation's input, before this map: in `dup`, which the map before has
  /// made of `up`, or if neither rounds in of.dup.
  virtual MapGradient<T> input_gradient(const ops::Context&, const MapGradient<T>& dy,
                                        const ActivationBackward<T>& of,
                                        const MapGradient<T>& dup) const;
  /// Adds to the gradient of the bias and adds to or overwrites that of the weight.
  virtual void weight_gradient(const ops::Context&, const MapGradient<T>& dy,
                               const MapInput<T>& x) const;

 protected:
  model::Linear<T> p_;
  const MapWorkspace<T>& workspace_;
};

template <class T>
using Map = std::shared_ptr<const LinearMap<T>>;

}  // namespace tern::linear
