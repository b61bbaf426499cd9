#include "block/norm.hpp"

#include "deck/choices.hpp"
#include "memory/narrow.hpp"

namespace tern::model {
namespace {

ops::Norm kind_of(const deck::Model& model) {
  return deck::norm_of(model) == deck::Norm::layernorm ? ops::Norm::layernorm : ops::Norm::rmsnorm;
}

}  // namespace

void declare_norm(const deck::Model& m, const std::string& at, Declaration& d) {
  const auto D = static_cast<std::size_t>(m.hidden);
  d.add({at + "/weight", {D}, {1, 0}});
  if (kind_of(m) == ops::Norm::layernorm) d.add({at + "/bias", {D}, {0, 0}});
}

template <class T>
Norm<T>::Norm(const deck::Model& model, const BlockShared<T>& shared)
    : shared_(shared), kind_(kind_of(model)), eps_(model.norm_eps) {}

template <class T>
typename Norm<T>::Saved Norm<T>::request(Arena& arena, const std::string& label,
                                         std::size_t rows) const {
  Saved saved;
  saved.rstd = arena.vector<A>(label + "/rstd", Term::activations, rows);
  if (kind_ == ops::Norm::layernorm)
    saved.mean = arena.vector<A>(label + "/mean", Term::activations, rows);
  return saved;
}

template <class T>
typename Norm<T>::Saved Norm<T>::part(const Saved& whole, Range rows) {
  return {rows_of(whole.mean, rows), rows_of(whole.rstd, rows)};
}

template <class T>
void Norm<T>::forward(const ops::Context& context, const Gain<T>& p, const Saved& saved,
                      Matrix<const T> x, const MapInput<T>& y,
                      const ops::PendingSum<T>& made) const {
  linear::norm_forward<T>(context,
                          {.kind = kind_,
                           .x = x,
                           .gain = p.gain,
                           .bias = p.bias,
                           .eps = eps_,
                           .y = y.values,
                           .mean = saved.mean,
                           .rstd = saved.rstd,
                           .made = made},
                          y);
}

template <class T>
void Norm<T>::backward(const ops::Context& context, const Gain<T>& p, const Saved& saved,
                       Matrix<const T> x, Matrix<const T> dy, Matrix<const T> residual,
                       Matrix<T> dx, const ops::DropoutKey& next, Matrix<const T> dy_added) const {
  const bool drops = shared_.fuses_next_dropout && next.probability > 0;
  ops::norm_backward<T>(context,
                        {.kind = kind_,
                         .dy = dy,
                         .x = x,
                         .gain = p.gain,
                         .mean = saved.mean,
                         .rstd = saved.rstd,
                         .dx = dx,
                         .residual = residual,
                         .dgain = p.dgain,
                         .dbias = p.dbias,
                         .partial = shared_.partial,
                         .magnitude = shared_.dstream.magnitude,
                         .dy_added = dy_added,
                         .dropped = drops ? shared_.branch_rows({0, dx.extent(0)}) : Matrix<T>(),
                         .dropout = next});
}

template class Norm<float>;
template class Norm<double>;
template class Norm<bf16>;
template class Norm<fp16>;

}  // namespace tern::model
