/// A linear map whose weight is rounded to fp8 for passes of few rows, and its input as well if
/// there is memory for that: each row has a scale (ops/fp8_weight.hpp).
#pragma once
#include "linear/linear_map.hpp"

namespace tern::linear::detail {

template <class T>
class Fp8InferenceMap final : public LinearMap<T> {
 public:
  /// `weight`: that of the parameters, which refresh() rounds in place.
  Fp8InferenceMap(const model::Linear<T>& parameters, Matrix<T> weight,
                  const MapWorkspace<T>& workspace)
      : LinearMap<T>(parameters, workspace), weight_(weight) {}

  /// The numbers of the weight.
  void request(Arena&, const std::string& label, std::size_t rows) override;
  void refresh(const ops::Context&) const override;

  MapInput<T> saved_input(Matrix<T> memory, const Scale&) const override { return coded(memory); }
  MapInput<T> input(Matrix<T> values, const Scale&, Use) const override { return coded(values); }

  void forward(const ops::Context&, const MapInput<T>& x, Matrix<T> y,
               Matrix<const T> added) const override;
  void forward(const ops::Context&, Activation, const MapInput<T>& x, Matrix<T> up,
               const MapInput<T>& y) const override;

 private:
  using LinearMap<T>::p_;
  using LinearMap<T>::workspace_;

  /// With codes, which live until the next map's input.
  MapInput<T> coded(Matrix<T> x) const;

  Matrix<T> weight_;
  ops::Fp8Rows codes_;
};

}  // namespace tern::linear::detail
