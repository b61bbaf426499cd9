#include "optimizer/muon.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "optimizer/kind.hpp"

namespace tern::optimizer {
namespace {

bool is_block_matrix(const model::Parameter& p) { return p.matrix() && p.layer >= 0; }

/// Scale of a step for a matrix's shape: for equal effect across shapes (Jordan), or for AdamW's
/// root mean square (Liu et al. 2025, "Muon is scalable for LLM training").
double shape_scale(const std::string& rule, double rows, double columns) {
  if (rule == "original") return std::sqrt(std::max(1.0, rows / columns));
  TERN_REQUIRE(rule == "match_rms_adamw", "muon_scale '{}'", rule);
  return 0.2 * std::sqrt(std::max(rows, columns));
}

/// Scales `rate`, a schedule of lr, to one of `lr_of` (0: lr).
double scaled_rate(double rate, double lr_of, double lr) {
  return lr_of > 0 ? rate * (lr_of / lr) : rate;
}

/// Matrices of `all` held by the range.
std::vector<model::Parameter> held_of(const std::vector<model::Parameter>& all, Range range) {
  std::vector<model::Parameter> matrices;
  for (const model::Parameter& p : all) {
    const std::size_t held = common({p.offset, p.count}, range).count;
    TERN_REQUIRE(held == 0 || held == p.count, "{} of {} elements of {} are owned", held, p.count,
                 p.name);
    if (held > 0) matrices.push_back(p);
  }
  return matrices;
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
    TERN_REQUIRE(!ended, "{} is not next to the other blocks' matrices", p.name);
    if (found.all.empty()) found.range.first = p.offset;
    found.all.push_back(p);
  }
  // Ends at the next parameter, so that what follows starts on a whole line.
  const auto& all = tree.parameters();
  const auto next = std::upper_bound(
      all.begin(), all.end(), found.all.back().offset,
      [](std::size_t offset, const model::Parameter& p) { return offset < p.offset; });
  found.range.count = (next == all.end() ? tree.span() : next->offset) - found.range.first;
  // Matrices of one shape are adjacent.
  std::stable_sort(
      found.all.begin(), found.all.end(),
      [](const model::Parameter& p, const model::Parameter& q) { return p.shape < q.shape; });
  return found;
}

template <class T>
std::vector<typename Muon<T>::Group> Muon<T>::groups(const std::vector<model::Parameter>& matrices,
                                                     std::size_t group_bytes) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const std::size_t R = matrices[i].shape[0], C = matrices[i].shape[1];
    Group* last = groups.empty() ? nullptr : &groups.back();
    if (last && last->rows == R && last->columns == C &&
        (last->count + 1) * R * C * sizeof(Product) <= group_bytes)
      ++last->count;
    else
      groups.push_back({R, C, i, 1});
  }
  return groups;
}

template <class T>
detail::BatchSize Muon<T>::largest(const std::vector<Group>& groups) {
  detail::BatchSize most;
  for (const Group& g : groups) most.include(g.count, g.rows, g.columns);
  return most;
}

template <class T>
Muon<T>::Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Range owned,
              Arena& arena, std::size_t group_bytes)
    : Muon(optimizer, tree, matrices(tree), owned, arena, group_bytes) {}

template <class T>
Muon<T>::Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Matrices matrices,
              Range owned, Arena& arena, std::size_t group_bytes)
    : optimizer_(optimizer),
      covered_(matrices.range),
      held_(common(covered_, owned)),
      momentum_(arena.vector<A>("momentum_buffer", Term::optimizer, held_.count)),
      // Sized for all ranks' matrices, so that ranks use equal memory.
      newton_schulz_(largest(groups(matrices.all, group_bytes)), arena),
      before_(optimizer, {0, covered_.first}, owned, tree.decayed(), arena),
      after_(optimizer, {covered_.end(), tree.span() - covered_.end()}, owned, tree.decayed(),
             arena) {
  const auto held = held_of(matrices.all, held_);
  groups_ = groups(held, group_bytes);
  at_ = arena.vector<std::size_t>("muon places", Term::workspace, matrices.all.size());
  HostVector<std::size_t> at("muon places", at_.size());
  for (std::size_t i = 0; i < held.size(); ++i) at(i) = held[i].offset;
  if (!arena.measuring()) Kokkos::deep_copy(at_, at);
}

template <class T>
void Muon<T>::apply(const ops::Context& context, const model::Parameters<T>& parameters,
                    Vector<const A> scale, double rate, std::int64_t step) {
  const double embed_rate = scaled_rate(rate, optimizer_.embed_lr, optimizer_.lr);
  before_.apply(context, parameters, scale, embed_rate, step);
  const double head_rate =
      optimizer_.head_lr > 0 ? scaled_rate(rate, optimizer_.head_lr, optimizer_.lr) : embed_rate;
  after_.apply(context, parameters, scale, head_rate, step);
  const auto held = Kokkos::make_pair(held_.first, held_.end());
  ops::nesterov<A>(context, optimizer_.momentum, Kokkos::subview(parameters.gradient, held), scale,
                   momentum_);
  const double matrix_rate = scaled_rate(rate, optimizer_.matrix_lr, optimizer_.lr);
  for (const Group& group : groups_) descend(context, parameters, scale, matrix_rate, group);
}

template <class T>
void Muon<T>::descend(const ops::Context& context, const model::Parameters<T>& parameters,
                      Vector<const A> scale, double rate, const Group& group) const {
  const Vector<const std::size_t> at(at_.data() + group.first, group.count);
  const auto directions =
      newton_schulz_(context, parameters.gradient, at, group.rows, group.columns);
  const double step = rate * shape_scale(optimizer_.muon_scale, static_cast<double>(group.rows),
                                         static_cast<double>(group.columns));
  ops::descend<T, Product>(context, {.keep = 1 - rate * optimizer_.weight_decay,
                                     .step = step,
                                     .direction = directions,
                                     .at = at,
                                     .gradient_scale = scale,
                                     .master = parameters.master,
                                     .copy = parameters.compute});
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
template class Muon<fp16>;
template class Muon<double>;

namespace {

template <class T>
std::unique_ptr<Update<T>> make(const deck::Optimizer& optimizer, const model::ParameterTree& tree,
                                Range owned, std::size_t, Arena& arena) {
  return std::make_unique<Muon<T>>(optimizer, tree, owned, arena);
}

/// One moment, and each matrix orthogonalized in 5 iterations of three products; AdamW otherwise.
Cost cost(const Owned& owned) {
  double flops = 0;
  for (const Owned::Matrix& m : owned.matrices) {
    const double least = std::min(m.rows, m.columns), most = std::max(m.rows, m.columns);
    flops += 5 * (4 * least * least * most + 2 * least * least * least);
  }
  return {{adamw_pass(owned.parameters - owned.in_matrices, owned.copy, 4),
           {40 * owned.in_matrices, 12}},
          flops * owned.layers,
          4};
}

}  // namespace

extern const Kind muon{"muon", {make<float>, make<bf16>, make<fp16>, make<double>}, cost};

}  // namespace tern::optimizer
