#include "block/mlp.hpp"

#include "deck/choices.hpp"
#include "memory/narrow.hpp"

namespace tern::model {
namespace {

/// Modules whose outputs, side by side, the activation reads.
std::vector<std::string> entries(Activation activation, const std::string& at) {
  if (gated(activation)) return {at + "gate_proj", at + "up_proj"};
  return {at + "up_proj"};
}

}  // namespace

void declare_mlp(const deck::Model& m, const std::string& at, Declaration& d) {
  const auto D = static_cast<std::size_t>(m.hidden), F = static_cast<std::size_t>(m.ffn_hidden);
  std::vector<Module> up;
  for (const std::string& module : entries(deck::activation_of(m), at))
    up.push_back({module, F, Held::rows});
  d.linear(up, D, {0, m.init_std}, m.ffn_bias);
  d.linear({{at + "down_proj", D, Held::columns}}, F, initial_residual(m), m.ffn_bias);
}

std::vector<Divided> divided_of_mlp(const deck::Model& m) { return {{"ffn_hidden", m.ffn_hidden}}; }

template <class T>
Mlp<T>::Mlp(const deck::Model& model, const Share& share, const Common<T>& common)
    : common_(common),
      activation_(deck::activation_of(model)),
      F_(static_cast<std::size_t>(model.ffn_hidden) / share.tensors) {}

template <class T>
typename Mlp<T>::Parameters Mlp<T>::bind(const Binder<T>& binder, const std::string& at) const {
  return {binder.linear(entries(activation_, at)), binder.summed(at + "down_proj")};
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::request(Arena& arena, const std::string& label,
                                       std::size_t rows) const {
  return {arena.matrix<T>(label + "/up", Term::activations, rows, gated(activation_) ? 2 * F_ : F_),
          arena.matrix<T>(label + "/activated", Term::activations, rows, F_),
          common_.request_scale(arena, label + "/activated"),
          common_.request_scale(arena, label + "/up gradient")};
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::part(const Saved& whole, Range rows) {
  Saved s = whole;
  s.up = rows_of(whole.up, rows);
  s.activated = rows_of(whole.activated, rows);
  return s;
}

template <class T>
Operand<T> Mlp<T>::forward(const ops::Context& context, const Parameters& p, const Saved& s,
                           const Operand<T>& x) const {
  const Operand<T> activated = common_.kept(p.down, s.activated, s.scale);
  if (x.rounded.wanted() || activated.rounded.wanted()) {
    common_.multiply(context, p.up, x, s.up);
    ops::activation_forward<T>(context, activation_, s.up, activated.values, activated.rounded);
  } else if (common_.trains) {
    ops::linear_activation_forward<T>(context, activation_, x.values, p.up.weight, p.up.bias, s.up,
                                      activated.values);
  } else {
    ops::linear_activation_inference<T>(context, activation_, x.values, p.up.weight, p.up.coded,
                                        p.up.bias, s.up, activated.values, x.coded);
    ops::round_operand<T>(context, activated, context.scaling);
  }
  return activated;
}

template <class T>
void Mlp<T>::backward(const ops::Context& context, const Parameters& p, const Saved& s,
                      const Operand<T>& x, const Operand<T>& dbranch, Matrix<T> dx) const {
  common_.weight_gradient(context, p.down, dbranch, common_.kept(p.down, s.activated, s.scale));
  const Operand<T> dup =
      up_gradient(context, p, s, dbranch, s.activated, gated(activation_) ? s.up : s.activated);
  common_.multiply_backward_summed(context, p.up, dup, x, dx);
}

template <class T>
Operand<T> Mlp<T>::up_gradient(const ops::Context& context, const Parameters& p, const Saved& s,
                               const Operand<T>& dbranch, Matrix<T> dactivated,
                               Matrix<T> to) const {
  const Operand<T> dup = common_.gradient(p.up, s.up, s.dup_scale);
  if (!dbranch.rounded.wanted() && !dup.rounded.wanted()) {
    ops::linear_activation_backward<T>(context, activation_, dbranch.values, p.down.weight, s.up,
                                       dactivated, to);
    return {to};
  }
  common_.input_gradient(context, p.down, dbranch, dactivated);
  ops::activation_backward<T>(context, activation_, s.up, dactivated, dup.values, dup.rounded);
  return dup;
}

template <class T>
void Mlp<T>::backward_inputs(const ops::Context& context, const Parameters& p, const Saved& s,
                             const Operand<T>& dbranch, Matrix<T> dactivated, Matrix<T> dx) const {
  const Operand<T> dup = up_gradient(context, p, s, dbranch, dactivated, s.up);
  common_.input_gradient(context, p.up, dup, dx);
}

template <class T>
void Mlp<T>::backward_weights(const ops::Context& context, const Parameters& p, const Saved& s,
                              const Operand<T>& x, const Operand<T>& dbranch) const {
  common_.weight_gradient(context, p.down, dbranch, {s.activated});
  common_.weight_gradient(context, p.up, {s.up}, x);
}

template class Mlp<float>;
template class Mlp<double>;
template class Mlp<bf16>;
template class Mlp<fp16>;

}  // namespace tern::model
