#include "model/detail/experts.hpp"

#include "base/error.hpp"
#include "model/detail/state.hpp"

namespace tern::model::detail {

template <class T>
void Experts<T>::request(Arena& arena, std::size_t rows, std::size_t places, bool training) {
  if (!any()) return;
  const auto matrix = [&](const char* name, std::size_t count, std::size_t columns) {
    return arena.matrix<A>(name, Term::workspace, count, columns);
  };
  logits_ = arena.matrix<T>("router logits", Term::workspace, rows, size_.X);
  values_ = arena.matrix<T>("results of experts", Term::workspace, rows * size_.k, size_.D);
  if (!training) return;
  dweights_ = matrix("gradients of experts' weights", rows, size_.k);
  counts_ = matrix("pairs of experts", places, size_.X);
  sums_ = matrix("probabilities of experts", places, size_.X);
  even_ = arena.vector<A>("gradient of balance", Term::workspace, size_.X);
  shares_ = arena.vector<A>("shares of balance", Term::workspace, size_.X);
}

/// values_ for the rows of a state, which may be narrowed.
template <class T>
Matrix<T> Experts<T>::values(const LayerState<T>& s) const {
  return narrow_rows(values_, s.router.routing.pairs.extent(0));
}

template <class T>
void Experts<T>::hidden(const ops::Context& context, const Layer<T>& layer,
                        LayerState<T>& s) const {
  const RouterState<T>& r = s.router;
  const Matrix<T> logits = narrow_rows(logits_, s.normed_ffn.extent(0));
  ops::linear_forward<T>(context, s.normed_ffn, layer.router.weight, {}, logits);
  ops::route<T>(context, renormalise_, logits, r.probabilities, r.weights, r.routing.experts);
  ops::sort_pairs(context, r.routing);
  ops::grouped_forward<T>(context, r.routing.offsets, {s.normed_ffn, r.routing.tokens},
                          layer.expert_up.weight, s.up);
  ops::weighted_swiglu<T>(context, s.up, r.weights, r.routing.pairs, s.activated);
}

template <class T>
void Experts<T>::output(const ops::Context& context, const Layer<T>& layer, const LayerState<T>& s,
                        Matrix<const T> added, Matrix<T> to) const {
  const ops::Routing& routing = s.router.routing;
  ops::grouped_forward<T>(context, routing.offsets, {s.activated}, layer.expert_down.weight,
                          values(s));
  ops::combine<T>(context, values(s), routing.rows, added, to);
}

template <class T>
void Experts<T>::backward(const ops::Context& context, const Layer<T>& layer, const Links<T>& links,
                          Matrix<const T> doutput, LayerState<T>& s) const {
  const RouterState<T>& r = s.router;
  const ops::Routing& to = r.routing;
  const ops::Gathered<T> dout{doutput, to.tokens}, x{s.normed_ffn, to.tokens};
  ops::grouped_backward_weight<T>(context, to.offsets, dout, {s.activated},
                                  layer.expert_down.dweight);
  const Matrix<T> dactivated = s.activated, dup = s.up, dnormed = s.normed_ffn;
  ops::grouped_backward_input<T>(context, to.offsets, dout, layer.expert_down.weight, dactivated);
  ops::weighted_swiglu_backward<T>(context, s.up, r.weights, to.pairs, dactivated, dup, dweights_);
  ops::grouped_backward_weight<T>(context, to.offsets, {dup}, x, layer.expert_up.dweight);
  ops::grouped_backward_input<T>(context, to.offsets, {dup}, layer.expert_up.weight, values(s));
  links.sum(context, dweights_);
  const Vector<const A> even = balanced_ ? even_ : Vector<A>();
  ops::route_backward<T>(context, {.renormalise = renormalise_,
                                   .probabilities = r.probabilities,
                                   .experts = to.experts,
                                   .weights = r.weights,
                                   .dweights = dweights_,
                                   .balance = even,
                                   .dlogits = logits_});
  ops::linear_backward_weight<T>(context, logits_, s.normed_ffn, layer.router.dweight, {});
  ops::combine<T>(context, values(s), to.rows, {}, dnormed);
  links.sum(context, dnormed);
  ops::linear_backward_input<T>(context, logits_, layer.router.weight, dnormed, ops::Write::add);
}

template <class T>
void Experts<T>::tally(const ops::Context& context, const LayerState<T>& s,
                       std::size_t place) const {
  if (counts_.extent(0) == 0) return;
  const auto row = [&](const Matrix<A>& of) {
    return Vector<A>(of.data() + place * size_.X, size_.X);
  };
  ops::tally_experts<A>(context, s.router.routing.offsets, s.router.probabilities, row(counts_),
                        row(sums_));
}

template <class T>
void Experts<T>::balance(const ops::Context& context, double weight, std::size_t rows,
                         Vector<A> loss) {
  TERN_REQUIRE(counts_.extent(0) > 0, "balance of a model without experts, or in evaluation");
  ops::balance_experts<A>(context, {.weight = weight,
                                    .tokens = rows * counts_.extent(0),
                                    .counts = counts_,
                                    .sums = sums_,
                                    .balance = even_,
                                    .shares = shares_,
                                    .loss = loss});
  balanced_ = weight != 0;
}

template class Experts<float>;
template class Experts<double>;
template class Experts<bf16>;

}  // namespace tern::model::detail
