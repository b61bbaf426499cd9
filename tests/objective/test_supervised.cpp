// Supervised training as a whole: derivatives, packing, micro-batches, and what evaluation says.
#include "model/slopes.hpp"
#include "objective/conversations.hpp"
#include "objective/harness.hpp"

namespace tern {
namespace {

constexpr int vocabulary = 23;
constexpr std::size_t positions = 40;

struct Kind {
  const char* name;
  bool qk_norm;
  double z_loss, logit_cap;
  std::int64_t inner_steps;
};
std::ostream& operator<<(std::ostream& stream, const Kind& kind) { return stream << kind.name; }

deck::Deck deck_of(const Kind& kind) {
  deck::Deck deck = test::tiny_deck();
  deck.model.context = positions;
  deck.model.qk_norm = kind.qk_norm;
  deck.model.logit_cap = kind.logit_cap;
  deck.model.inner_steps = kind.inner_steps;
  deck.objective.kind = "supervised";
  deck.objective.z_loss = kind.z_loss;
  return deck;
}

data::ChatSource packed(std::size_t conversations = 8) {
  return {test::random_chats(conversations, vocabulary, 5), {positions, true, false, 3}};
}

data::ChatSource unpacked(std::size_t conversations = 8) {
  return {test::random_chats(conversations, vocabulary, 5), {positions, false, false, 3}};
}

class Supervised : public testing::TestWithParam<Kind> {};

/// Along random directions of each parameter.
TEST_P(Supervised, GradientIsTheDerivativeOfTheLoss) {
  const data::ChatSource source = packed();
  test::Pass<double> pass(deck_of(GetParam()), source.rows(), positions);
  pass.randomize(3);
  const data::Batch batch = test::batch_of(source, 0, source.rows());
  const double loss = pass.step(batch);
  EXPECT_NEAR(pass.loss(batch), loss, 1e-13);
  const double worst = test::expect_slopes(
      pass.tree, pass.parameters->master, [&](const auto& name) { return pass.gradient(name); },
      [&] { return pass.loss(batch); }, {.step = 1e-4, .relative = 1e-7, .least_gradient = 1e-4});
  std::printf("%s: %zu parameters, worst relative error %.1e\n", GetParam().name,
              pass.tree.parameters().size(), worst);
}

/// Largest relative difference of two passes' gradients.
double largest_difference(const test::Pass<double>& a, const test::Pass<double>& b) {
  double worst = 0;
  for (const model::Parameter& p : a.tree.parameters())
    worst = std::max(worst, test::relative_error(a.gradient(p.name), b.gradient(p.name)));
  return worst;
}

TEST_P(Supervised, PackedIsUnpacked) {
  const data::ChatSource together = packed(), alone = unpacked();
  ASSERT_EQ(alone.rows(), 8u);
  ASSERT_LT(together.rows(), 5u);
  test::Pass<double> few(deck_of(GetParam()), together.rows(), positions);
  test::Pass<double> many(deck_of(GetParam()), alone.rows(), positions);
  few.randomize(3);
  many.randomize(3);
  const double loss = few.step(test::batch_of(together, 0, together.rows()));
  const double same = many.step(test::batch_of(alone, 0, alone.rows()));
  const double worst = largest_difference(few, many);
  std::printf("%s: %zu rows - %zu rows: %.1e of loss %.6f, gradients %.1e\n", GetParam().name,
              together.rows(), alone.rows(), loss - same, loss, worst);
  EXPECT_GT(loss, 0.1);
  EXPECT_NEAR(loss, same, 1e-12);
  EXPECT_LT(worst, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Supervised,
                         testing::Values(Kind{"plain", false, 0, 0, 0},
                                         Kind{"qk_norm", true, 0, 0, 0},
                                         Kind{"z_loss_and_cap", false, 1e-2, 2, 0},
                                         Kind{"recursive", false, 0, 0, 1}),
                         [](const auto& kind) { return std::string(kind.param.name); });

constexpr Kind plain{"plain", false, 0, 0, 0};

/// A token weighs the same in whatever micro-batch, with however many others, it stands; and a
/// micro-batch may have rows that hold nothing.
TEST(SupervisedSteps, MicroStepsSumToTheStep) {
  const data::ChatSource source = packed(11);
  const std::size_t rows = source.rows();
  test::Pass<double> whole(deck_of(plain), rows, positions);
  test::Pass<double> parts(deck_of(plain), 2, positions);
  whole.randomize(3);
  parts.randomize(3);
  const double loss = whole.step(test::batch_of(source, 0, rows));
  double sum = 0;
  std::map<std::string, std::vector<double>> gradients;
  for (std::size_t first = 0; first < rows; first += 2) {
    const data::Batch batch = test::batch_of(source, first, 2);
    ASSERT_NE(batch.own.tokens, batch.step.tokens);
    sum += parts.step(batch);
    for (const model::Parameter& p : parts.tree.parameters()) {
      const std::vector<double> part = parts.gradient(p.name);
      std::vector<double>& all = gradients[p.name];
      all.resize(part.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += part[i];
    }
  }
  EXPECT_NEAR(sum, loss, 1e-12);
  for (const auto& [name, gradient] : gradients)
    EXPECT_LT(test::relative_error(gradient, whole.gradient(name)), 1e-12) << name;
}

TEST(SupervisedSteps, RecomputationChangesNoBit) {
  deck::Deck deck = deck_of(plain);
  const data::ChatSource source = packed();
  test::Pass<double> kept(deck, source.rows(), positions);
  deck.precision.recompute = "block";
  test::Pass<double> again(deck, source.rows(), positions);
  kept.randomize(3);
  again.randomize(3);
  const data::Batch batch = test::batch_of(source, 0, source.rows());
  EXPECT_EQ(kept.step(batch), again.step(batch));
  for (const model::Parameter& p : kept.tree.parameters())
    EXPECT_EQ(kept.gradient(p.name), again.gradient(p.name)) << p.name;
}

/// Rows that hold one conversation each are attended to causally, packed ones by spans.
TEST(SupervisedSteps, OnlySharedRowsNeedSpans) {
  for (const bool packing : {true, false}) {
    const data::ChatSource source = packing ? packed() : unpacked();
    test::Pass<double> pass(deck_of(plain), source.rows(), positions);
    const auto prepared =
        pass.objective->prepare(pass.context, test::batch_of(source, 0, source.rows()), 0, false);
    EXPECT_EQ(prepared.pattern.kind,
              packing ? ops::Pattern::Kind::spans : ops::Pattern::Kind::causal);
    EXPECT_EQ(prepared.pattern.query_offset, 0);
  }
}

/// What is not learned has no part in the loss but as context; what stands before it has.
TEST(SupervisedSteps, OnlyLearnedTokensAreScored) {
  std::vector<text::ChatTokens> chats = test::random_chats(2, vocabulary, 5);
  const auto loss_of = [&](std::vector<text::ChatTokens> of) {
    const data::ChatSource source(std::move(of), {positions, true, false, 3});
    test::Pass<double> pass(deck_of(plain), source.rows(), positions);
    pass.randomize(3);
    return pass.loss(test::batch_of(source, 0, source.rows()));
  };
  const double loss = loss_of(chats);
  text::ChatTokens longer = chats[0];  // one more of the user's tokens behind the answer
  longer.tokens.push_back(1), longer.learned.push_back(0);
  longer.roles.push_back(text::Role::user);
  EXPECT_NEAR(loss_of({longer, chats[1]}), loss, 1e-13);
  chats[0].tokens[0] = (chats[0].tokens[0] + 1) % vocabulary;
  EXPECT_GT(std::abs(loss_of(chats) - loss), 1e-6);
}

TEST(SupervisedScore, IsOfTheLearnedTokens) {
  const data::ChatSource source = packed();
  const std::size_t rows = source.rows();
  test::Pass<double> pass(deck_of(plain), rows, positions);
  pass.randomize(3);
  const data::Batch batch = test::batch_of(source, 0, rows);
  const objective::Score score = pass.evaluate({batch});
  EXPECT_EQ(score.tokens, batch.step.predicted());
  EXPECT_NEAR(score.loss, pass.loss(batch), 1e-13);
  // Beyond the set's end there are empty micro-batches.
  data::Batch empty;
  empty.sequences = rows, empty.tokens_per_sequence = positions;
  source.start(empty);
  const objective::Score same = pass.evaluate({batch, empty});
  EXPECT_EQ(same.loss, score.loss);
  EXPECT_EQ(same.metrics, score.metrics);

  const auto prepared = pass.objective->prepare(pass.context, batch, 0, true);
  const std::vector<double> wanted = test::download(prepared.scored.targets);
  std::vector<std::int32_t> best(wanted.begin(), wanted.end());
  best[0] = (best[0] + 1) % vocabulary;
  std::vector<double> sums(pass.objective->sums(), 0);
  pass.objective->accumulate(0, std::vector<double>(wanted.size(), 0.5), best, sums);
  const objective::Score told = pass.objective->finalize(sums, false);
  const double count = static_cast<double>(wanted.size());
  EXPECT_DOUBLE_EQ(told.loss, 0.5);
  EXPECT_DOUBLE_EQ(told.metrics.at("val/accuracy"), (count - 1) / count);
}

}  // namespace
}  // namespace tern
