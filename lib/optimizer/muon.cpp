#include "optimizer/muon.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace tern::optimizer {
namespace {

bool is_block_matrix(const model::Parameter& p) {
  return p.matrix() && p.name.starts_with("model/layers/");
}

/// The scale of a step by the matrix's shape: so that steps of different shapes do alike (Jordan),
/// or have the root mean square of AdamW's (Liu et al. 2025, "Muon is scalable for LLM training").
double shape_scale(const std::string& rule, double rows, double columns) {
  if (rule == "original") return std::sqrt(std::max(1.0, rows / columns));
  TERN_REQUIRE(rule == "match_rms_adamw", "muon_scale '{}'", rule);
  return 0.2 * std::sqrt(std::max(rows, columns));
}

/// `rate` was made from lr; the same course from `lr_of` (0: lr).
double in_proportion(double rate, double lr_of, double lr) {
  return lr_of > 0 ? rate * (lr_of / lr) : rate;
}

}  // namespace

template <class T>
typename Muon<T>::Matrices Muon<T>::matrices(const model::ParameterTree& tree) {
  Matrices found;
  bool ended = false;
  for (const model::Parameter& p : tree.parameters()) {
    if (!is_block_matrix(p)) {
      ended = !found.all.empty();
      continue;
    }
    TERN_REQUIRE(!ended, "{} does not stand among the other blocks' matrices", p.name);
    if (found.all.empty()) found.range.first = p.offset;
    found.all.push_back(&p);
    found.elements = std::max(found.elements, p.count);
    found.side = std::max(found.side, std::min(p.shape[0], p.shape[1]));
  }
  // Up to the next parameter, so that what follows starts at a whole line.
  const auto& all = tree.parameters();
  const auto next = std::upper_bound(
      all.begin(), all.end(), found.all.back()->offset,
      [](std::size_t offset, const model::Parameter& p) { return offset < p.offset; });
  found.range.count = (next == all.end() ? tree.span() : next->offset) - found.range.first;
  return found;
}

template <class T>
Muon<T>::Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Range owned,
              Arena& arena)
    : Muon(optimizer, tree, matrices(tree), owned, arena) {}

template <class T>
Muon<T>::Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree,
              const Matrices& matrices, Range owned, Arena& arena)
    : optimizer_(optimizer),
      covered_(matrices.range),
      held_(common(covered_, owned)),
      momentum_(arena.vector<A>("momentum_buffer", Term::optimizer, held_.count)),
      newton_schulz_(matrices.elements, matrices.side, arena),
      before_(optimizer, tree, {0, covered_.first}, owned, arena),
      after_(optimizer, tree, {covered_.end(), tree.span() - covered_.end()}, owned, arena) {
  for (const model::Parameter* p : matrices.all) {
    const std::size_t held = common({p->offset, p->count}, held_).count;
    TERN_REQUIRE(held == 0 || held == p->count, "{} of {} elements of {} are owned", held, p->count,
                 p->name);
    if (held > 0) matrices_.push_back(*p);
  }
}

template <class T>
void Muon<T>::apply(const ops::Context& context, const model::Parameters<T>& parameters,
                    Vector<const A> scale, double rate, std::int64_t step) {
  const double others = in_proportion(rate, optimizer_.embed_lr, optimizer_.lr);
  before_.apply(context, parameters, scale, others, step);
  after_.apply(context, parameters, scale, others, step);
  const auto held = Kokkos::make_pair(held_.first, held_.end());
  ops::nesterov<A>(context, optimizer_.momentum, Kokkos::subview(parameters.gradient, held), scale,
                   momentum_);
  const double matrix_rate = in_proportion(rate, optimizer_.matrix_lr, optimizer_.lr);
  for (const model::Parameter& matrix : matrices_)
    descend(context, parameters, scale, matrix_rate, matrix);
}

template <class T>
void Muon<T>::descend(const ops::Context& context, const model::Parameters<T>& parameters,
                      Vector<const A> scale, double rate, const model::Parameter& matrix) const {
  const std::size_t R = matrix.shape[0], C = matrix.shape[1], at = matrix.offset;
  const auto direction =
      newton_schulz_(context, Matrix<const A>(parameters.gradient.data() + at, R, C));
  const double step =
      rate * shape_scale(optimizer_.muon_scale, static_cast<double>(R), static_cast<double>(C));
  ops::descend<T, Product>(context, 1 - rate * optimizer_.weight_decay, step, direction, scale,
                           Matrix<A>(parameters.master.data() + at, R, C),
                           Matrix<T>(parameters.compute.data() + at, R, C));
}

template <class T>
std::vector<State<T>> Muon<T>::states() const {
  std::vector<State<T>> states{{"momentum_buffer", covered_, held_, momentum_}};
  for (const AdamW<T>* part : {&before_, &after_})
    for (State<T>& state : part->states()) states.push_back(std::move(state));
  return states;
}

template class Muon<float>;
template class Muon<bf16>;
template class Muon<double>;

}  // namespace tern::optimizer
