#include "linear/linear_map.hpp"

namespace tern::linear {

template <class T>
void LinearMap<T>::forward(const ops::Context& context, const MapInput<T>& x, Matrix<T> y,
                           Matrix<const T> added) const {
  ops::linear_forward<T>(context, x.values, p_.weight, p_.bias, y, added);
}

template <class T>
void LinearMap<T>::forward(const ops::Context& context, Activation activation, const MapInput<T>& x,
                           Matrix<T> up, const MapInput<T>& y) const {
  if (workspace_.trains)
    ops::linear_activation_forward<T>(context, activation, x.values, p_.weight, p_.bias, up,
                                      y.values);
  else
    ops::linear_activation_inference<T>(context, activation, x.values, p_.weight, {}, p_.bias, up,
                                        y.values);
}

template <class T>
void LinearMap<T>::input_gradient(const ops::Context& context, const MapGradient<T>& dy,
                                  Matrix<T> dx) const {
  ops::linear_backward_input<T>(context, dy.values, p_.weight, dx);
}

template <class T>
MapGradient<T> LinearMap<T>::input_gradient(const ops::Context& context, const MapGradient<T>& dy,
                                            const ActivationBackward<T>& of,
                                            const MapGradient<T>&) const {
  ops::linear_activation_backward<T>(context, of.activation, dy.values, p_.weight, of.up,
                                     of.dactivated, of.dup);
  return {of.dup};
}

template <class T>
void LinearMap<T>::weight_gradient(const ops::Context& context, const MapGradient<T>& dy,
                                   const MapInput<T>& x) const {
  ops::linear_backward_weight<T>(context, dy.values, x.values, p_.dweight, p_.dbias,
                                 workspace_.weight_gradients);
}

template class LinearMap<float>;
template class LinearMap<double>;
template class LinearMap<bf16>;
template class LinearMap<fp16>;

}  // namespace tern::linear
