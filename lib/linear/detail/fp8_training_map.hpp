/// A linear map in fp8, in training and in evaluations of such a model (ops/fp8.hpp): each operand
/// has one scale. Passes whose rows or columns are not multiples of 16 are in T.
#pragma once
#include "linear/linear_map.hpp"

namespace tern::linear::detail {

template <class T>
class Fp8TrainingMap final : public LinearMap<T> {
 public:
  using LinearMap<T>::LinearMap;

  /// Weights, rounded once per change; without, they are rounded for each product.
  void request(Arena&, const std::string& label, std::size_t rows) override;
  void refresh(const ops::Context&) const override;

  MapInput<T> saved_input(Matrix<T> memory, const Scale&) const override;
  MapInput<T> input(Matrix<T> values, const Scale&, Use) const override;
  MapGradient<T> gradient(Matrix<T> values, const Scale&) const override;

  void forward(const ops::Context&, const MapInput<T>& x, Matrix<T> y,
               Matrix<const T> added) const override;
  void forward(const ops::Context&, Activation, const MapInput<T>& x, Matrix<T> up,
               const MapInput<T>& y) const override;
  void input_gradient(const ops::Context&, const MapGradient<T>& dy, Matrix<T> dx) const override;
  MapGradient<T> input_gradient(const ops::Context&, const MapGradient<T>& dy,
                                const ActivationBackward<T>& of,
                                const MapGradient<T>& dup) const override;
  void weight_gradient(const ops::Context&, const MapGradient<T>& dy,
                       const MapInput<T>& x) const override;

 private:
  using LinearMap<T>::p_;
  using LinearMap<T>::workspace_;

  bool takes(std::size_t rows) const {
    return ops::fp8_takes(rows, p_.weight.extent(1), p_.weight.extent(0));
  }
  ops::Fp8Matrix weight(const ops::Context&, bool transposed) const;

  ops::Fp8Matrix rounded_;  // the weight, if kept
};

}  // namespace tern::linear::detail
