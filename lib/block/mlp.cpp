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
    up.push_back({module, F, Placement::rows});
  d.linear(up, D, {0, m.init_std}, m.ffn_bias);
  d.linear({{at + "down_proj", D, Placement::columns}}, F, initial_residual(m), m.ffn_bias);
}

std::vector<Divided> divided_of_mlp(const deck::Model& m) { return {{"ffn_hidden", m.ffn_hidden}}; }

template <class T>
Mlp<T>::Mlp(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared)
    : shared_(shared),
      activation_(deck::activation_of(model)),
      F_(static_cast<std::size_t>(model.ffn_hidden) / share.tensors) {}

template <class T>
typename Mlp<T>::Parameters Mlp<T>::bind(const Binder<T>& binder, linear::Precision<T>& precision,
                                         const std::string& at) const {
  return {precision.bind(binder.linear(entries(activation_, at)), at + "up_proj"),
          precision.bind(binder.summed(at + "down_proj"), at + "down_proj")};
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::request(Arena& arena, const std::string& label,
                                       std::size_t rows) const {
  return {arena.matrix<T>(label + "/up", Term::activations, rows, gated(activation_) ? 2 * F_ : F_),
          arena.matrix<T>(label + "/activated", Term::activations, rows, F_),
          shared_.precision.request_scale(arena, label + "/activated"),
          shared_.precision.request_scale(arena, label + "/up gradient")};
}

template <class T>
void Mlp<T>::request_workspace(Arena& arena, std::size_t rows) {
  dactivated_ = arena.matrix<T>("activation gradient", Term::workspace, rows, F_);
}

template <class T>
typename Mlp<T>::Saved Mlp<T>::part(const Saved& whole, Range rows) {
  Saved s = whole;
  s.up = rows_of(whole.up, rows);
  s.activated = rows_of(whole.activated, rows);
  return s;
}

template <class T>
MapInput<T> Mlp<T>::forward(const ops::Context& context, const Parameters& p, const Saved& s,
                            const MapInput<T>& x) const {
  const MapInput<T> activated = p.down->saved_input(s.activated, s.scale);
  p.up->forward(context, activation_, x, s.up, activated);
  return activated;
}

template <class T>
Stream<T> Mlp<T>::backward(const ops::Context& context, const Parameters& p, const Saved& s,
                           const MapInput<T>& x, const BranchGradient<T>& dbranch, Matrix<T> dx,
                           WeightGradients<T>& weights) const {
  weights.add(context, p.down, dbranch, p.down->saved_input(s.activated, s.scale));
  weights.run(context);  // the following overwrites `activated`
  const bool later = weights.later();
  const MapGradient<T> dup =
      p.down->input_gradient(context, dbranch.dy,
                             {activation_, s.up, later ? dactivated_ : s.activated,
                              later || gated(activation_) ? s.up : s.activated},
                             p.up->gradient(s.up, s.dup_scale));
  weights.add(context, p.up, dup, x);
  return shared_.input_gradient(context, p.up, dup, dx, weights);
}

template class Mlp<float>;
template class Mlp<double>;
template class Mlp<bf16>;
template class Mlp<fp16>;

}  // namespace tern::model
