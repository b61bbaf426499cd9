#include "model/block/mlp.hpp"

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
      D_(static_cast<std::size_t>(model.hidden)),
      F_(static_cast<std::size_t>(model.ffn_hidden) / share.tensors) {}

template <class T>
typename Mlp<T>::Parameters Mlp<T>::bind(const Binder<T>& binder, const std::string& at) const {
  return {binder.linear(entries(activation_, at)), binder.summed(at + "down_proj")};
}

template <class T>
std::vector<MapShape> Mlp<T>::maps() const {
  return {{D_, gated(activation_) ? 2 * F_ : F_}, {F_, D_}};
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::request(Arena& arena, const std::string& label,
                                       std::size_t rows) const {
  return {arena.matrix<T>(label + "/up", Term::activations, rows, maps()[0].outputs),
          arena.matrix<T>(label + "/activated", Term::activations, rows, F_),
          common_.request_magnitude(arena, label + "/activated")};
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::narrow(const Saved& whole, std::size_t rows) {
  return {narrow_rows(whole.up, rows), narrow_rows(whole.activated, rows), whole.magnitude};
}

template <class T>
void Mlp<T>::forward(const ops::Context& context, const Parameters& p, const Saved& s,
                     const Operand<T>& x, const Residual<T>& residual) const {
  common_.multiply(context, p.up, x, s.up);
  ops::activation_forward<T>(context, activation_, s.up, s.activated, s.magnitude);
  residual.add(context, common_, [&](Matrix<const T> added, Matrix<T> to) {
    common_.multiply_add(context, p.down, common_.found(s.activated, s.magnitude), added, to);
  });
}

template <class T>
void Mlp<T>::backward(const ops::Context& context, const Parameters& p, const Saved& s,
                      const Operand<T>& x, const Operand<T>& dbranch, Matrix<T> dx) const {
  const Matrix<T> dactivated = s.activated, dup = s.up;
  common_.multiply_backward(context, p.down, dbranch, common_.found(s.activated, s.magnitude),
                            dactivated);
  ops::activation_backward<T>(context, activation_, s.up, dactivated, dup,
                              common_.dhidden_magnitude);
  common_.multiply_backward(context, p.up, common_.found(dup, common_.dhidden_magnitude), x, dx);
  common_.links.sum(context, dx);
}

template class Mlp<float>;
template class Mlp<double>;
template class Mlp<bf16>;

}  // namespace tern::model
