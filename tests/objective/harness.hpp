/// A whole pass of an objective: prepared batch, transformer, losses and gradients.
#pragma once
#include <fmt/format.h>

#include "deck/objective_kind.hpp"
#include "model/harness.hpp"
#include "objective/batches.hpp"
#include "objective/objective.hpp"

namespace tern::test {

/// Of a small model.
inline deck::Deck tiny_deck() {
  deck::Deck deck;
  deck.campaign.seed = 21;
  deck.model = tiny_model();
  deck.model.hidden = 16, deck.model.head_dim = 4, deck.model.vocabulary = 23;
  return deck;
}

/// Of block diffusion; level embedding, weights and blocks for hdp.
inline deck::Deck tiny_deck(const std::string& hierarchy) {
  deck::Deck deck = tiny_deck();
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
      : deck_(deck),
        rows_(rows),
        positions_(positions),
        tree(model::declare(deck.model)),
        arena_(planned()) {
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
  double loss(const data::Batch& batch) { return run(batch, false); }

  /// The same, with gradients, which replace those before.
  double step(const data::Batch& batch) {
    Kokkos::deep_copy(parameters->gradient, A(0));
    return run(batch, true);
  }

  static model::MicroBatch<T> micro(const objective::Prepared<T>& prepared,
                                    const ops::DropoutKey& dropout = {}) {
    return {prepared.rows, prepared.pattern, prepared.scored, dropout};
  }

  /// Score of batches as an evaluation makes it.
  objective::Score evaluate(const std::vector<data::Batch>& batches) {
    std::vector<double> sums(objective->sums(), 0);
    for (const data::Batch& batch : batches) {
      const objective::Prepared<T> prepared = objective->prepare(context, batch, 0, true);
      const std::size_t scored = prepared.scored.targets.extent(0);
      const Vector<std::int32_t> best(best_.data(), scored);
      const model::MicroBatch<T> given = micro(prepared);
      transformer->embed(context, given);
      for (std::size_t s = 0; s < objective->evaluated_steps(false); ++s) {
        transformer->advance(context, given, s);
        transformer->loss(context, given, objective->head(), losses(prepared), best, s);
        std::vector<std::int32_t> likeliest;
        for (const double token : download(best))
          likeliest.push_back(static_cast<std::int32_t>(token));
        objective->accumulate(s, download(losses(prepared)), likeliest, sums);
      }
    }
    return objective->finalize(sums, false);
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
  std::unique_ptr<objective::Objective<T>> objective;
  std::vector<double> parts;

 private:
  struct Plan {};
  Pass(const deck::Deck& deck, std::size_t rows, std::size_t positions, Plan)
      : deck_(deck), rows_(rows), positions_(positions), tree(model::declare(deck.model)) {}

  std::size_t planned() const {
    Arena measure;
    Pass(deck_, rows_, positions_, Plan{}).request(measure);
    return measure.bytes();
  }

  void request(Arena& from) {
    const std::size_t all = rows_ * positions_;
    const std::string& kind = deck_.objective.kind;
    const std::size_t scored = kind == "block_diffusion" ? all / 2
                               : kind == "supervised"    ? all - rows_
                                                         : all;
    model::TransformerOptions options{rows_, positions_};
    options.positions = static_cast<std::size_t>(deck_.model.context);
    options.scored = scored < all ? scored : 0;
    options.recompute = deck_.precision.recompute == "block";
    options.head_rows = 7;  // several chunks
    if (kind == "refinement")
      options.connected = static_cast<std::size_t>(deck::connected_steps(deck_));
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, model::Purpose::training, from);
    transformer.emplace(deck_.model, tree, *parameters, options, from);
    objective = objective::make_objective<T>(deck_, objective::Shape{rows_, positions_, 1}, from);
    losses_ = from.template vector<A>("losses", Term::data, scored);
    best_ = from.template vector<std::int32_t>("best", Term::data, scored);
  }

  Vector<A> losses(const objective::Prepared<T>& prepared) const {
    return Vector<A>(losses_.data(), prepared.scored.targets.extent(0));
  }

  double run(const data::Batch& batch, bool with_backward) {
    const objective::Prepared<T> prepared = objective->prepare(context, batch, 0, false);
    const Vector<A> of_rows = losses(prepared);
    Vector<const A> weights = prepared.weights;
    double total = objective->constant();
    parts.assign(prepared.parts.size(), 0);
    const model::MicroBatch<T> given = micro(prepared);
    auto weight_gradients = transformer->weight_gradients();
    transformer->embed(context, given);
    for (std::size_t s = 0; s < objective->steps(); ++s) {
      transformer->advance(context, given, s);
      if (s > 0) weights = objective->weights_of(context, s, prepared, of_rows);
      if (with_backward) {
        transformer->loss_backward(context, given, objective->head(), weights, of_rows, s);
        transformer->backward(context, given, weight_gradients, s);
      } else {
        transformer->loss(context, given, objective->head(), of_rows, {}, s);
      }
      total += dot(of_rows, weights);
      for (std::size_t part = 0; part < parts.size(); ++part)
        if (prepared.parts[part].step == s)
          parts[part] = dot(of_rows, prepared.parts[part].weights);
    }
    if (with_backward) transformer->embed_backward(context, given);
    context.fence("pass");
    return total;
  }

  double dot(Vector<const A> a, Vector<const A> b) const {
    context.fence("losses");
    const std::vector<double> x = download(a), y = download(b);
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  }
};

}  // namespace tern::test
