// Recursive refinement: gradients against finite differences, recomputation, the loss as its
// formula has it, validation by the number of refinements.
#include "objective/refinement.hpp"

#include "model/slopes.hpp"

namespace tern {
namespace {

using test::Pass;

/// The loss whose derivative backward states: the weights of a step's losses and, if `detached`, the
/// states that it starts from, are those of the parameters at the beginning.
class HeldLoss {
 public:
  HeldLoss(Pass<double>& pass, const data::Batch& batch, bool detached)
      : pass_(pass), batch_(batch), detached_(detached) {
    run(true);
  }

  double operator()() { return run(false); }

 private:
  double run(bool hold) {
    const auto prepared = pass_.objective->prepare(pass_.context, batch_, 0, false);
    const std::size_t rows = prepared.weights.extent(0), last = pass_.transformer->passes() - 1;
    const Kokkos::View<double*, Kokkos::LayoutRight, DeviceMemory> own("losses", rows);
    const Vector<double> losses = own;
    double total = pass_.objective->constant();
    pass_.transformer->embed(pass_.context, Pass<double>::micro(prepared));
    for (std::size_t step = 0; step < pass_.objective->steps(); ++step) {
      if (step > 0 && !hold && detached_) {
        restore(answers_[step - 1], pass_.transformer->finished(last));
        restore(latents_[step - 1], pass_.transformer->finished(last - 1));
      }
      pass_.transformer->advance(pass_.context, Pass<double>::micro(prepared), step);
      if (hold) {
        const auto weights =
            step == 0 ? prepared.weights
                      : pass_.objective->weights_of(pass_.context, step, prepared, losses);
        weights_.push_back(test::download(weights));
      }
      if (hold && detached_) {
        answers_.push_back(test::download(pass_.transformer->finished(last)));
        latents_.push_back(test::download(pass_.transformer->finished(last - 1)));
      }
      pass_.transformer->loss(pass_.context, Pass<double>::micro(prepared), pass_.objective->head(),
                              losses, {}, step);
      const std::vector<double> of_rows = test::download(losses);
      for (std::size_t row = 0; row < rows; ++row) total += weights_[step][row] * of_rows[row];
    }
    return total;
  }

  static void restore(const std::vector<double>& values, Matrix<const double> state) {
    test::upload(values, Vector<double>(const_cast<double*>(state.data()), state.size()));
  }

  Pass<double>& pass_;
  data::Batch batch_;
  bool detached_;
  std::vector<std::vector<double>> weights_, answers_, latents_;
};

deck::Deck nanochat_like() {
  deck::Deck deck = test::refinement_deck();
  deck.model.activation = "relu2", deck.model.qk_norm = true, deck.model.tie_embeddings = false;
  deck.model.logit_cap = 3, deck.model.inner_steps = 1;
  deck.objective.weight_base = 10, deck.objective.reward = 2;
  return deck;
}

deck::Deck with(deck::Deck deck, const char* recursion, const char* initial,
                std::int64_t detach_from) {
  deck.model.recursion = recursion, deck.model.initial_states = initial;
  deck.objective.detach_from = detach_from;
  return deck;
}

TEST(Refinement, GradientIsTheDerivativeOfTheLoss) {
  const deck::Deck plain = test::refinement_deck();
  for (const deck::Deck& deck :
       {plain, nanochat_like(), with(plain, "stack", "learned", 9),
        with(plain, "stack", "input", 2), with(plain, "block", "learned", 2),
        with(nanochat_like(), "block", "input", 9)}) {
    Pass<double> pass(deck, 3, 7);
    pass.randomize(3);
    const data::Batch batch = test::random_batch(deck, 3, 7);
    HeldLoss held(pass, batch, deck.objective.detach_from == 0);
    const double loss = pass.step(batch);
    EXPECT_NEAR(held(), loss, 1e-12);
    // The slope of relu2 has kinks, which only a small step does not meet.
    const bool smooth = deck.model.activation != "relu2";
    const double worst =
        test::expect_slopes(pass.tree, pass.parameters->master,
                            [&](const auto& name) { return pass.gradient(name); }, held,
                            {.step = smooth ? 1e-5 : 1e-6,
                             .relative = smooth ? 1e-7 : 1e-6,
                             .absolute = smooth ? 0 : 1e-8,
                             .least_gradient = 1e-4});
    std::printf("%s, %s: worst relative error %.1e\n", deck.model.activation.c_str(),
                deck.model.recursion.c_str(), worst);
  }
}

TEST(Refinement, RecomputationGivesTheSameBits) {
  const deck::Deck plain = test::refinement_deck();
  for (deck::Deck deck : {plain, with(plain, "stack", "learned", 1),
                          with(plain, "block", "input", 0), with(plain, "block", "learned", 1)}) {
    std::vector<std::vector<double>> gradients;
    for (const char* recompute : {"none", "block"}) {
      deck.precision.recompute = recompute;
      Pass<float> pass(deck, 2, 9);
      pass.randomize(4);
      pass.step(test::random_batch(deck, 2, 9));
      gradients.push_back(test::download(pass.parameters->gradient));
    }
    EXPECT_EQ(gradients[0], gradients[1]) << deck.model.recursion << deck.objective.detach_from;
  }
}

/// sum_s w_s L_s - r mean_s (L_{s-1} - L_s) / L_{s-1}, from the losses of single sequences.
TEST(Refinement, LossIsThatOfTheFormula) {
  deck::Deck deck = test::refinement_deck();
  deck.objective.weight_base = 3, deck.objective.reward = 0.7;
  const std::size_t sequences = 4, length = 6;
  const data::Batch batch = test::random_batch(deck, sequences, length);
  Pass<double> pass(deck, sequences, length);
  pass.randomize(5);
  const double loss = pass.loss(batch);
  const std::vector<double> steps = pass.parts;
  double improvement = 0;
  for (std::size_t b = 0; b < sequences; ++b) {
    const auto cut = [&](const std::vector<std::int32_t>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(b * length);
      return std::vector<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(length));
    };
    Pass<double> alone(deck, 1, length);
    alone.randomize(5);
    alone.loss(test::causal_batch(1, length, cut(batch.inputs), cut(batch.targets)));
    for (std::size_t s = 1; s < 3; ++s)
      improvement += (1 - alone.parts[s] / alone.parts[s - 1]) / (2 * sequences);
  }
  const double weighted = (steps[0] + 3 * steps[1] + 9 * steps[2]) / 13;
  EXPECT_NEAR(loss, weighted - 0.7 * improvement, 1e-12);
  EXPECT_NEAR(pass.objective->figures(steps).at("refinement"), 1 - steps[2] / steps[0], 1e-15);
}

/// Validation takes 2 S refinements; its loss is that of the trained number, or of the one asked
/// for, and does not depend on what else is evaluated.
TEST(Refinement, ScoresEveryNumberOfRefinements) {
  deck::Deck deck = test::refinement_deck();
  const data::Batch batch = test::random_batch(deck, 2, 8);
  const auto score = [&](std::int64_t refine) {
    deck.generation.refine = refine;
    Pass<double> pass(deck, 2, 8);
    pass.randomize(6);
    const objective::Score made = pass.evaluate({batch});
    pass.loss(batch);
    for (std::size_t s = 0; s < pass.parts.size(); ++s)
      EXPECT_NEAR(made.metrics.at(fmt::format("val/loss_step_{}", s)), pass.parts[s], 1e-12);
    return made;
  };
  const objective::Score trained = score(-1), none = score(0), many = score(9);
  EXPECT_EQ(trained.tokens, 16);
  EXPECT_EQ(trained.metrics.size(), 7u + 1u);
  EXPECT_EQ(trained.loss, trained.metrics.at("val/loss_step_2"));
  EXPECT_EQ(none.loss, trained.metrics.at("val/loss_step_0"));
  EXPECT_EQ(many.loss, many.metrics.at("val/loss_step_9"));
  EXPECT_EQ(many.metrics.at("val/loss_step_6"), trained.metrics.at("val/loss_step_6"));
  EXPECT_NEAR(trained.metrics.at("val/refinement"), 1 - trained.loss / none.loss, 1e-15);
}

TEST(Refinement, DropoutDrawsAnewInEveryStepAndPass) {
  deck::Deck deck = test::refinement_deck();
  deck.model.dropout = 0.4;
  Pass<float> pass(deck, 2, 8);
  pass.randomize(7);
  const auto prepared =
      pass.objective->prepare(pass.context, test::random_batch(deck, 2, 8), 0, false);
  ops::DropoutKey key;
  key.probability = 0.4, key.seed = 3, key.step = 1;
  const auto states = [&](const ops::DropoutKey& dropout) {
    std::vector<std::vector<double>> found;
    const model::MicroBatch<float> given = Pass<float>::micro(prepared, dropout);
    pass.transformer->embed(pass.context, given);
    for (std::size_t step = 0; step < 2; ++step)
      found.push_back(test::download(pass.transformer->advance(pass.context, given, step)));
    return found;
  };
  EXPECT_EQ(states(key), states(key));
  const auto first = states(key);
  key.layer += 2 * 3 * 2;  // the streams of the second step: 3 passes of 2 layers
  EXPECT_NE(first, states(key));
}

}  // namespace
}  // namespace tern
