#include "block/experts.hpp"

#include "base/error.hpp"
#include "memory/narrow.hpp"

namespace tern::model {

void declare_experts(const deck::Model& m, const std::string& at, Declaration& d) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::size_t D = size(m.hidden), F = size(m.expert_hidden), X = size(m.experts);
  const auto module = [&](std::size_t expert, const char* name) {
    return fmt::format("{}experts/{}/{}", at, expert, name);
  };
  d.linear({{at + "gate", X, Placement::whole}}, D, {0, m.init_std}, false);
  d.linears(X,
            [&](std::size_t e) {
              return std::vector<Module>{{module(e, "gate_proj"), F, Placement::rows},
                                         {module(e, "up_proj"), F, Placement::rows}};
            },
            D, {0, m.init_std});
  d.linears(
      X,
      [&](std::size_t e) {
        return std::vector<Module>{{module(e, "down_proj"), D, Placement::columns}};
      },
      F, initial_residual(m));
}

std::vector<Divided> divided_of_experts(const deck::Model& m) {
  return {{"expert_hidden", m.expert_hidden}};
}

template <class T>
Experts<T>::Experts(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared)
    : shared_(shared), size_(model, share), renormalize_(model.renormalize_experts) {}

template <class T>
typename Experts<T>::Parameters Experts<T>::bind(const Binder<T>& binder,
                                                 const std::string& at) const {
  return {binder.linear({at + "gate"}),
          binder.grouped(at + "experts", size_.X, {"gate_proj", "up_proj"}),
          binder.grouped(at + "experts", size_.X, {"down_proj"})};
}

// ---- memory ----

template <class T>
typename Experts<T>::Saved Experts<T>::request(Arena& arena, const std::string& label,
                                               std::size_t N) const {
  using Index = std::int32_t;
  const std::size_t R = N * size_.k;
  const auto name = [&](const char* of) { return label + "/router/" + of; };
  Saved s;
  s.up = arena.matrix<T>(label + "/up", Term::activations, R, size_.up);
  s.activated = arena.matrix<T>(label + "/activated", Term::activations, R, size_.F);
  s.probabilities = arena.matrix<A>(name("probabilities"), Term::activations, N, size_.X);
  s.weights = arena.matrix<A>(name("weights"), Term::activations, N, size_.k);
  s.routing.experts = arena.matrix<Index>(name("experts"), Term::activations, N, size_.k);
  s.routing.offsets = arena.vector<Index>(name("offsets"), Term::activations, size_.X + 1);
  s.routing.pairs = arena.vector<Index>(name("pairs"), Term::activations, R);
  s.routing.tokens = arena.vector<Index>(name("tokens"), Term::activations, R);
  s.routing.rows = arena.matrix<Index>(name("rows"), Term::activations, N, size_.k);
  return s;
}

template <class T>
typename Experts<T>::Saved Experts<T>::narrow(const Saved& whole, std::size_t N) const {
  const std::size_t R = N * size_.k;
  Saved s = whole;
  for (Matrix<T>* m : {&s.up, &s.activated}) *m = narrow_rows(*m, R);
  s.probabilities = narrow_rows(s.probabilities, N);
  s.weights = narrow_rows(s.weights, N);
  for (Matrix<std::int32_t>* m : {&s.routing.experts, &s.routing.rows}) *m = narrow_rows(*m, N);
  for (Vector<std::int32_t>* v : {&s.routing.pairs, &s.routing.tokens}) *v = narrow_rows(*v, R);
  return s;
}

template <class T>
void Experts<T>::request_workspace(Arena& arena, std::size_t rows, std::size_t places,
                                   bool training) {
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

template <class T>
Matrix<T> Experts<T>::values(const Saved& s) const {
  return narrow_rows(values_, s.routing.pairs.extent(0));
}

// ---- forward and backward ----

template <class T>
void Experts<T>::forward(const ops::Context& context, const Parameters& p, const Saved& s,
                         Matrix<const T> x) const {
  const ops::Routing& to = s.routing;
  const Matrix<T> logits = narrow_rows(logits_, x.extent(0));
  ops::linear_forward<T>(context, x, p.router.weight, {}, logits);
  ops::route<T>(context, renormalize_, logits, s.probabilities, s.weights, to.experts);
  ops::sort_pairs(context, to);
  ops::grouped_forward<T>(context, to.offsets, {x, to.tokens}, p.up.weight, s.up);
  ops::weighted_swiglu<T>(context, s.up, s.weights, to.pairs, s.activated);
}

template <class T>
void Experts<T>::add(const ops::Context& context, const Parameters& p, const Saved& s,
                     Stream<T>& to, Matrix<const T> added, const ops::DropoutKey& dropout) const {
  shared_.add(context, to, added, dropout, [&](Matrix<const T> to_add, Matrix<T> result) {
    ops::grouped_forward<T>(context, s.routing.offsets, {s.activated}, p.down.weight, values(s));
    ops::combine<T>(context, values(s), s.routing.rows, to_add, result);
  });
}

template <class T>
Stream<T> Experts<T>::backward(const ops::Context& context, const Parameters& p, const Saved& s,
                               Matrix<const T> x, Matrix<const T> dbranch, Vector<const A> balanced,
                               Matrix<T> dx) const {
  const ops::Routing& to = s.routing;
  const ops::Gathered<T> dout{dbranch, to.tokens}, in{x, to.tokens};
  const Matrix<T> dactivated = s.activated, dup = s.up;
  ops::grouped_backward_weight<T>(context, to.offsets, dout, {s.activated}, p.down.dweight);
  ops::grouped_backward_input<T>(context, to.offsets, dout, p.down.weight, dactivated);
  ops::weighted_swiglu_backward<T>(context, s.up, s.weights, to.pairs, dactivated, dup, dweights_);
  ops::grouped_backward_weight<T>(context, to.offsets, {dup}, in, p.up.dweight);
  ops::grouped_backward_input<T>(context, to.offsets, {dup}, p.up.weight, values(s));
  shared_.links.sum(context, dweights_);
  ops::route_backward<T>(context, {.renormalize = renormalize_,
                                   .probabilities = s.probabilities,
                                   .experts = to.experts,
                                   .weights = s.weights,
                                   .dweights = dweights_,
                                   .balance = balanced,
                                   .dlogits = logits_});
  ops::linear_backward_weight<T>(context, logits_, x, p.router.dweight, {});
  ops::combine<T>(context, values(s), to.rows, {}, dx);
  shared_.links.sum(context, dx);
  ops::linear_backward_input<T>(context, logits_, p.router.weight, dx, ops::Write::add);
  return Stream<T>(shared_.sums, dx);
}

// ---- load balance ----

template <class T>
void Experts<T>::tally(const ops::Context& context, const Saved& s, std::size_t place) const {
  if (counts_.extent(0) == 0) return;
  const auto row = [&](const Matrix<A>& of) {
    return Vector<A>(of.data() + place * size_.X, size_.X);
  };
  ops::tally_experts<A>(context, s.routing.offsets, s.probabilities, row(counts_), row(sums_));
}

template <class T>
Vector<const Accumulate<T>> Experts<T>::balance(const ops::Context& context, double weight,
                                                std::size_t rows, Vector<A> loss) const {
  TERN_REQUIRE(counts_.extent(0) > 0, "balance of a model without experts, or in evaluation");
  ops::balance_experts<A>(context, {.weight = weight,
                                    .tokens = rows * counts_.extent(0),
                                    .counts = counts_,
                                    .sums = sums_,
                                    .balance = even_,
                                    .shares = shares_,
                                    .loss = loss});
  return weight != 0 ? even_ : Vector<A>();
}

template class Experts<float>;
template class Experts<double>;
template class Experts<bf16>;
template class Experts<fp16>;

}  // namespace tern::model
