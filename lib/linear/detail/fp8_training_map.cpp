#include "linear/detail/fp8_training_map.hpp"

namespace tern::linear::detail {

template <class T>
void Fp8TrainingMap<T>::request(Arena& arena, const std::string& label, std::size_t rows) {
  if (!takes(rows)) return;
  const auto bytes = [&](std::size_t n, std::size_t columns) {
    return arena.matrix<std::uint8_t>(label, Term::parameters, n, columns);
  };
  const auto [I, O] = this->shape();
  rounded_ = {ops::Fp8Format::e4m3, bytes(O, I), bytes(I, O),
              Scale(arena, label + "/scale", Term::activations)};
}

template <class T>
void Fp8TrainingMap<T>::refresh(const ops::Context& context) const {
  if (rounded_.wanted()) ops::fp8_round<T>(context, p_.weight, rounded_, ops::Scaling::current);
}

template <class T>
ops::Fp8Matrix Fp8TrainingMap<T>::weight(const ops::Context& context, bool transposed) const {
  return rounded_.wanted() ? rounded_ : workspace_.fp8.weights(context, p_.weight, transposed);
}

// ---- operands ----

template <class T>
MapInput<T> Fp8TrainingMap<T>::saved_input(Matrix<T> memory, const Scale& scale) const {
  return takes(memory.extent(0)) ? workspace_.fp8.kept(memory, scale) : MapInput<T>{memory};
}

template <class T>
MapInput<T> Fp8TrainingMap<T>::input(Matrix<T> values, const Scale& scale, Use use) const {
  if (!takes(values.extent(0))) return {values};
  return workspace_.fp8.input(values, scale, use == Use::weight_gradient);
}

template <class T>
MapGradient<T> Fp8TrainingMap<T>::gradient(Matrix<T> values, const Scale& scale) const {
  if (!takes(values.extent(0))) return {values};
  return workspace_.fp8.gradient(values, scale, p_.dbias.size() > 0);
}

// ---- products ----

template <class T>
void Fp8TrainingMap<T>::forward(const ops::Context& context, const MapInput<T>& x, Matrix<T> y,
                                Matrix<const T> added) const {
  if (!x.rounded.wanted()) return LinearMap<T>::forward(context, x, y, added);
  ops::fp8_linear_forward<T>(context, workspace_.fp8, x.rounded, weight(context, false), p_.bias, y,
                             added);
}

template <class T>
void Fp8TrainingMap<T>::forward(const ops::Context& context, Activation activation,
                                const MapInput<T>& x, Matrix<T> up, const MapInput<T>& y) const {
  if (!x.rounded.wanted() && !y.rounded.wanted())
    return LinearMap<T>::forward(context, activation, x, up, y);
  forward(context, x, up, {});
  ops::activation_forward<T>(context, activation, up, y.values, y.rounded);
}

template <class T>
void Fp8TrainingMap<T>::input_gradient(const ops::Context& context, const MapGradient<T>& dy,
                                       Matrix<T> dx) const {
  if (!dy.rounded.wanted()) return LinearMap<T>::input_gradient(context, dy, dx);
  ops::fp8_linear_backward_input<T>(context, workspace_.fp8, dy.rounded, weight(context, true), dx);
}

template <class T>
MapGradient<T> Fp8TrainingMap<T>::input_gradient(const ops::Context& context,
                                                 const MapGradient<T>& dy,
                                                 const ActivationBackward<T>& of,
                                                 const MapGradient<T>& dup) const {
  if (!dy.rounded.wanted() && !dup.rounded.wanted())
    return LinearMap<T>::input_gradient(context, dy, of, dup);
  input_gradient(context, dy, of.dactivated);
  ops::activation_backward<T>(context, of.activation, of.up, of.dactivated, dup.values,
                              dup.rounded);
  return dup;
}

template <class T>
void Fp8TrainingMap<T>::weight_gradient(const ops::Context& context, const MapGradient<T>& dy,
                                        const MapInput<T>& x) const {
  if (!dy.rounded.wanted()) return LinearMap<T>::weight_gradient(context, dy, x);
  ops::fp8_linear_backward_weight<T>(context, workspace_.fp8, dy.rounded, x.rounded, p_.dweight,
                                     workspace_.weight_gradients);
  if (p_.dbias.size() > 0) ops::column_sums<T>(context, dy.values, p_.dbias);
}

template class Fp8TrainingMap<float>;
template class Fp8TrainingMap<double>;
template class Fp8TrainingMap<bf16>;
template class Fp8TrainingMap<fp16>;

}  // namespace tern::linear::detail
