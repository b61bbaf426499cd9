#include "objective/refinement.hpp"

#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "deck/objective_kind.hpp"
#include "objective/kind.hpp"

namespace tern::objective {
namespace {

/// base^s, normalized to sum 1, without overflow.
std::vector<double> step_shares(std::int64_t steps, double base) {
  std::vector<double> shares;
  for (std::int64_t s = 0; s < steps; ++s)
    shares.push_back(std::pow(base, static_cast<double>(base > 1 ? s - (steps - 1) : s)));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

/// Reward for improvements of 1 in every step.
double rewards_of(const deck::Objective& o) {
  return o.reward_over == "sum" ? o.reward * static_cast<double>(o.supervision_steps - 1)
                                : o.reward;
}

double improvement(double first, double last) { return (first - last) / first; }

std::string step_name(std::size_t step) { return fmt::format("step_{}", step); }

}  // namespace

std::size_t refinements(const deck::Deck& deck) {
  if (!deck::kind_of(deck).refines) return 0;
  return static_cast<std::size_t>(
      deck.generation.refine >= 0 ? deck.generation.refine : deck.objective.supervision_steps - 1);
}

template <class T>
Refinement<T>::Refinement(const deck::Deck& deck, const Shape& shape, Arena& arena)
    : Causal<T>(deck, shape, arena),
      shares_(step_shares(deck.objective.supervision_steps, deck.objective.weight_base)),
      all_rewards_(rewards_of(deck.objective)),
      reward_(all_rewards_ / static_cast<double>(steps() - 1)),
      tokens_(shape.tokens),
      refined_(refinements(deck)),
      weights_(arena.vector<A>("step weights", Term::data, shape.batch * shape.tokens)) {}

template <class T>
Prepared<T> Refinement<T>::prepare(const ops::Context& context, const data::Batch& batch,
                                   std::size_t slot, bool evaluating) {
  Prepared<T> prepared = Causal<T>::prepare(context, batch, slot, evaluating);
  for (std::size_t step = 0; step < steps(); ++step)
    prepared.parts.push_back({prepared.weights, step});
  if (evaluating) return prepared;
  unit_ = 1 / static_cast<double>(batch.step.predicted());
  Kokkos::deep_copy(context.space, weights_, static_cast<A>(shares_[0] * unit_));
  prepared.weights = weights_;
  return prepared;
}

/// Only -L_s / L_{s-1} of an improvement is differentiated.
template <class T>
Vector<const Accumulate<T>> Refinement<T>::weights_of(const ops::Context& context, std::size_t step,
                                                      const Prepared<T>& prepared,
                                                      Vector<const A> losses) {
  ops::improvement_weights<A>(context, {.unit = unit_,
                                        .base = shares_[step],
                                        .reward = reward_,
                                        .losses = losses,
                                        .targets = prepared.scored.targets,
                                        .tokens = tokens_,
                                        .weights = weights_});
  return weights_;
}

template <class T>
std::vector<std::string> Refinement<T>::parts() const {
  std::vector<std::string> names;
  for (std::size_t step = 0; step < steps(); ++step) names.push_back(step_name(step));
  return names;
}

template <class T>
std::map<std::string, double> Refinement<T>::figures(const std::vector<double>& parts) const {
  return {{"refinement", improvement(parts.front(), parts.back())}};
}

template <class T>
std::size_t Refinement<T>::evaluated_steps(bool training) const {
  return std::max(refined_, training ? steps() - 1 : 2 * steps()) + 1;
}

template <class T>
void Refinement<T>::accumulate(std::size_t step, const std::vector<double>& losses,
                               const std::vector<std::int32_t>&, std::vector<double>& sums) {
  if (step == 0) sums[0] += this->scored();
  for (const double loss : losses) sums[1 + step] += loss;
}

template <class T>
Score Refinement<T>::finalize(const std::vector<double>& sums, bool training) {
  Score score;
  score.tokens = static_cast<std::int64_t>(sums[0]);
  const auto loss = [&](std::size_t step) { return sums[1 + step] / sums[0]; };
  score.loss = loss(refined_);
  for (std::size_t step = 0; step < evaluated_steps(training); ++step)
    score.metrics["val/loss_" + step_name(step)] = loss(step);
  score.metrics["val/refinement"] = improvement(loss(0), score.loss);
  return score;
}

template class Refinement<float>;
template class Refinement<double>;
template class Refinement<bf16>;
template class Refinement<fp16>;

extern const Kind refinement{.name = "refinement", .make = makers<Refinement>};

}  // namespace tern::objective
