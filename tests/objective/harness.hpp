/// A whole pass of an objective: prepared batch, transformer, losses and gradients.
#pragma once
#include <fmt/format.h>

#include "model/harness.hpp"
#include "objective/batches.hpp"
#include "objective/block_diffusion.hpp"

namespace tern::test {

/// Of a small model; level embedding, weights and blocks for hdp.
inline deck::Deck tiny_deck(const std::string& hierarchy) {
  deck::Deck deck;
  deck.campaign.seed = 21;
  deck.model = tiny_model();
  deck.model.hidden = 16, deck.model.head_dim = 4, deck.model.vocabulary = 23;
  deck.model.context = 64;
  deck.objective.kind = "block_diffusion";
  deck.objective.hierarchy = hierarchy;
  if (hierarchy != "hdp") return deck;
  deck.model.levels = data::levels + 1;
  deck.objective.plan_weight = 0.7, deck.objective.execution_weight = 1.3;
  return deck;
}

template <class T>
class Pass {
  using A = Accumulate<T>;

 public:
  /// Of batches of `rows` rows of `positions`.
  Pass(const deck::Deck& deck, std::size_t rows, std::size_t positions)
      : deck_(deck), rows_(rows), positions_(positions), tree(deck.model), arena_(planned()) {
    request(arena_);
    transformer->prepare(context);
  }

  /// Random parameters, none at a value where it does nothing.
  void randomize(unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (const model::Parameter& p : tree.parameters()) {
      std::vector<float> values(p.count);
      for (float& v : values)
        v = static_cast<float>(p.init_mean) + (p.matrix() ? 0.3f : 0.2f) * normal(generator);
      set(p.name, values);
    }
    parameters->refresh_compute(context);
  }

  void set(const std::string& name, const std::vector<float>& values) {
    upload(values, master(tree.at(name)));
  }
  Vector<A> master(const model::Parameter& p) {
    return Vector<A>(parameters->master.data() + p.offset, p.count);
  }
  std::vector<double> gradient(const std::string& name) const {
    const model::Parameter& p = tree.at(name);
    return download(Vector<A>(parameters->gradient.data() + p.offset, p.count));
  }

  /// Loss of a training step's batch; its parts() are left in `parts`.
  double loss(const data::Batch& batch) {
    const objective::Prepared<T> prepared = forward(batch, false);
    transformer->loss(context, objective->head(), prepared.scored, losses(prepared));
    return totals(prepared);
  }

  /// The same, with gradients, which replace those before.
  double step(const data::Batch& batch) {
    Kokkos::deep_copy(parameters->gradient, A(0));
    const objective::Prepared<T> prepared = forward(batch, false);
    transformer->loss_backward(context, objective->head(), prepared.scored, prepared.weights,
                               losses(prepared));
    for (std::size_t l = transformer->layers(); l-- > 0;)
      transformer->block_backward(context, l, prepared.pattern, {});
    transformer->embed_backward(context, prepared.rows);
    return totals(prepared);
  }

  /// Score of batches as an evaluation makes it.
  objective::Score evaluate(const std::vector<data::Batch>& batches) {
    std::vector<double> sums(objective->sums(), 0);
    for (const data::Batch& batch : batches) {
      const objective::Prepared<T> prepared = forward(batch, true);
      const std::size_t scored = prepared.scored.targets.extent(0);
      const Vector<std::int32_t> best(best_.data(), scored);
      transformer->loss(context, objective->head(), prepared.scored, losses(prepared), best);
      std::vector<std::int32_t> likeliest;
      for (const double token : download(best))
        likeliest.push_back(static_cast<std::int32_t>(token));
      objective->tally(download(losses(prepared)), likeliest, sums);
    }
    return objective->conclude(sums, false);
  }

 private:
  const deck::Deck deck_;
  const std::size_t rows_, positions_;

 public:
  const model::ParameterTree tree;

 private:
  Arena arena_;
  Vector<A> losses_;
  Vector<std::int32_t> best_;

 public:
  ops::Context context;
  std::optional<model::Parameters<T>> parameters;
  std::optional<model::Transformer<T>> transformer;
  std::unique_ptr<objective::BlockDiffusion<T>> objective;
  std::vector<double> parts;

 private:
  struct Plan {};
  Pass(const deck::Deck& deck, std::size_t rows, std::size_t positions, Plan)
      : deck_(deck), rows_(rows), positions_(positions), tree(deck.model) {}

  std::size_t planned() const {
    Arena measure;
    Pass(deck_, rows_, positions_, Plan{}).request(measure);
    return measure.bytes();
  }

  void request(Arena& from) {
    const std::size_t scored = rows_ * positions_ / 2;
    model::TransformerOptions options{rows_, positions_};
    options.positions = static_cast<std::size_t>(deck_.model.context);
    options.scored = scored;
    options.head_rows = 7;  // several chunks
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, true, from);
    transformer.emplace(deck_.model, tree, *parameters, options, from);
    objective = std::make_unique<objective::BlockDiffusion<T>>(
        deck_, objective::Shape{rows_, positions_, 1}, from);
    losses_ = from.template vector<A>("losses", Term::data, scored);
    best_ = from.template vector<std::int32_t>("best", Term::data, scored);
  }

  Vector<A> losses(const objective::Prepared<T>& prepared) const {
    return Vector<A>(losses_.data(), prepared.scored.targets.extent(0));
  }

  objective::Prepared<T> forward(const data::Batch& batch, bool evaluating) {
    objective::Prepared<T> prepared = objective->prepare(context, batch, 0, evaluating);
    transformer->forward(context, prepared.rows, prepared.pattern);
    return prepared;
  }

  double totals(const objective::Prepared<T>& prepared) {
    context.fence("pass");
    const std::vector<double> of_rows = download(losses(prepared));
    const auto dot = [&](const std::vector<double>& weights) {
      return std::inner_product(of_rows.begin(), of_rows.end(), weights.begin(), 0.0);
    };
    parts.clear();
    for (const auto& weights : prepared.parts) parts.push_back(dot(download(weights)));
    return dot(download(prepared.weights));
  }
};

}  // namespace tern::test
