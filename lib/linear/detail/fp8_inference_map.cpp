#include "linear/detail/fp8_inference_map.hpp"

namespace tern::linear::detail {

template <class T>
void Fp8InferenceMap<T>::request(Arena& arena, const std::string& label, std::size_t) {
  codes_ = {arena, label, Term::parameters, p_.weight.extent(0), p_.weight.extent(1)};
}

template <class T>
void Fp8InferenceMap<T>::refresh(const ops::Context& context) const {
  ops::fp8_round_rows<T>(context, weight_, codes_);
}

template <class T>
MapInput<T> Fp8InferenceMap<T>::coded(Matrix<T> x) const {
  const ops::Fp8Rows& memory = workspace_.coded_input;
  if (!memory.wanted()) return {x};
  return {x, {}, memory.shaped(x.extent(0), x.extent(1))};
}

template <class T>
void Fp8InferenceMap<T>::forward(const ops::Context& context, const MapInput<T>& x, Matrix<T> y,
                                 Matrix<const T> added) const {
  ops::fp8_weight_forward<T>(context, x.values, p_.weight, codes_, p_.bias, y, added, x.coded);
}

template <class T>
void Fp8InferenceMap<T>::forward(const ops::Context& context, Activation activation,
                                 const MapInput<T>& x, Matrix<T> up, const MapInput<T>& y) const {
  ops::linear_activation_inference<T>(context, activation, x.values, p_.weight, codes_, p_.bias, up,
                                      y.values, x.coded);
  round(context, y);
}

template class Fp8InferenceMap<float>;
template class Fp8InferenceMap<double>;
template class Fp8InferenceMap<bf16>;
template class Fp8InferenceMap<fp16>;

}  // namespace tern::linear::detail
