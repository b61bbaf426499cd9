// Self-consistency of the transformer: derivatives from finite differences, recomputation,
// evaluation mode, dropout, and the memory it plans.
#include "model/slopes.hpp"

namespace tern {
namespace {

deck::Model relu2_without_positions() {
  deck::Model m = test::tiny_model();
  m.activation = "relu2", m.norm = "layernorm", m.position = "none", m.ffn_bias = true;
  return m;
}

deck::Model plain_experts() {
  deck::Model m = test::moe_like();
  m.experts = 5, m.experts_per_token = 3, m.renormalize_experts = false, m.norm = "layernorm";
  return m;
}

deck::Model connected() {
  deck::Model m = test::qwen3_like();
  m.layers = 6, m.skip_connections = m.input_shortcut = true, m.value_embeddings = 2;
  return m;
}

deck::Model skipping() {
  deck::Model m = test::gpt2_like();
  m.layers = 3, m.skip_connections = true;
  return m;
}

deck::Model short_cut() {
  deck::Model m = test::moe_like();
  m.input_shortcut = true, m.value_embeddings = 1;
  return m;
}

struct Case {
  const char* name;
  deck::Model model;
};

std::vector<Case> cases() {
  return {{"llama", test::tiny_model()}, {"gpt2", test::gpt2_like()},
          {"qwen3", test::qwen3_like()}, {"relu2", relu2_without_positions()},
          {"moe", test::moe_like()},     {"moe_plain", plain_experts()},
          {"connected", connected()},    {"skipping", skipping()},
          {"short_cut", short_cut()}};
}

/// Initialized, and moved off the values at which gains and biases have no effect.
template <class T>
void randomize(test::Harness<T>& model, std::uint64_t seed) {
  model.parameters->initialize(model.context, model.tree, seed);
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(0, 0.2f);
  for (const model::Parameter& p : model.tree.parameters()) {
    if (p.matrix()) continue;
    std::vector<float> values(p.count);
    for (float& v : values) v = static_cast<float>(p.init_mean) + normal(generator);
    model.set(p.name, values);
  }
  model.parameters->refresh_compute(model.context);
  model.set_random_batch(static_cast<unsigned>(seed) + 5);
}

class Transformer : public testing::TestWithParam<Case> {};

/// Slopes along random directions of each parameter, in double.
TEST_P(Transformer, GradientIsTheDerivativeOfTheLoss) {
  test::Harness<double> model(GetParam().model, {2, 7});
  randomize(model, 11);
  model.head.z_loss = 1e-2;
  model.head.vocabulary = 35;
  std::vector<std::int32_t> targets = test::random_tokens(14, 35, 3);
  targets[2] = targets[9] = -1;
  model.set_batch(test::random_tokens(14, 37, 2), targets);
  model.step();
  test::expect_slopes(
      model.tree, model.parameters->master, [&](const auto& name) { return model.gradient(name); },
      [&] { return model.loss(); }, {.step = 1e-5, .relative = 1e-6, .absolute = 1e-9});
}

template <class T>
std::vector<double> gradients_with(const deck::Model& description, bool recompute,
                                   const ops::DropoutKey& dropout) {
  model::TransformerOptions options{2, 9};
  options.recompute = recompute;
  test::Harness<T> model(description, options);
  randomize(model, 21);
  std::vector<double> result{model.step(dropout)};
  for (const double g : test::download(model.parameters->gradient)) result.push_back(g);
  return result;
}

TEST_P(Transformer, RecomputationGivesTheSameBits) {
  deck::Model description = GetParam().model;
  description.layers = std::max<std::int64_t>(3, description.layers);
  description.dropout = 0.2;
  for (const double probability : {0.0, 0.2}) {
    ops::DropoutKey dropout;
    dropout.probability = probability, dropout.seed = 5, dropout.step = 17;
    EXPECT_EQ(gradients_with<float>(description, false, dropout),
              gradients_with<float>(description, true, dropout));
  }
}

/// As in a pipeline: each micro-batch's gradients of weights after the next one's forward. Returns
/// all gradients; without weights_later one micro-batch after the other.
template <class T>
std::vector<double> gradients_of_three(const deck::Model& description, bool weights_later) {
  model::TransformerOptions options{2, 9};
  options.weights_later = weights_later, options.in_flight = weights_later ? 2 : 1;
  test::Harness<T> model(description, options);
  randomize(model, 71);
  const auto micro = [&](std::uint32_t number) {
    ops::DropoutKey dropout;
    dropout.probability = description.dropout, dropout.seed = 5, dropout.step = number;
    model::MicroBatch<T> result = model.micro(dropout);
    result.slot = number % options.in_flight;
    return result;
  };
  const auto& transformer = *model.transformer;
  auto weight_gradients = transformer.weight_gradients();
  for (std::uint32_t number = 0; number < 3; ++number) {
    transformer.forward(model.context, micro(number));
    weight_gradients.run_later(model.context);
    transformer.loss_backward(model.context, micro(number), model.head, model.weights,
                              model.losses);
    transformer.backward(model.context, micro(number), weight_gradients);
    transformer.embed_backward(model.context, micro(number));
  }
  weight_gradients.run_later(model.context);
  return test::download(model.parameters->gradient);
}

TEST(WeightsLater, GivesTheSameBits) {
  for (deck::Model description : {test::tiny_model(), test::gpt2_like(), test::qwen3_like()})
    for (const double dropout : {0.0, 0.2}) {
      description.layers = 3, description.dropout = dropout;
      EXPECT_EQ(gradients_of_three<float>(description, true),
                gradients_of_three<float>(description, false));
      EXPECT_EQ(gradients_of_three<bf16>(description, true),
                gradients_of_three<bf16>(description, false));
    }
}

TEST_P(Transformer, EvaluationGivesTheLogitsAndLossOfTraining) {
  test::Harness<double> training(GetParam().model, {3, 5});
  model::TransformerOptions options{3, 5};
  options.training = false;
  test::Harness<double> evaluation(GetParam().model, options);
  randomize(training, 31);
  randomize(evaluation, 31);
  EXPECT_LT(test::relative_error(evaluation.logits(), training.logits()), 1e-14);
  const double loss = training.step();
  EXPECT_NEAR(evaluation.loss(), loss - training.balance_term(), 1e-13);
}

/// For bf16 the plan includes compute copies and workspaces of another type.
TEST_P(Transformer, PlansTheMemoryItTakes) {
  for (const bool training : {false, true})
    for (const bool recompute : {false, true}) {
      model::TransformerOptions options{2, 9};
      options.training = training;
      options.recompute = recompute && training;
      test::Harness<bf16> model(GetParam().model, options);
      EXPECT_EQ(model.arena.bytes(),
                test::Harness<bf16>::plan(GetParam().model, model.tree, options));
      EXPECT_GT(model.arena.bytes(Term::activations), 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Transformer, testing::ValuesIn(cases()),
                         [](const auto& kind) { return std::string(kind.param.name); });

/// For fixed keys the loss with dropout has the slopes that backward returns.
TEST(Dropout, GradientIsTheDerivativeOfTheDroppedLoss) {
  deck::Model description = test::gpt2_like();
  description.dropout = 0.3;
  test::Harness<double> model(description, {2, 7});
  randomize(model, 41);
  ops::DropoutKey dropout;
  dropout.probability = 0.3, dropout.seed = 9, dropout.step = 2;
  model.step(dropout);
  test::expect_slopes(
      model.tree, model.parameters->master, [&](const auto& name) { return model.gradient(name); },
      [&] { return model.step(dropout); }, {.step = 1e-5, .relative = 1e-6, .absolute = 1e-9});
}

TEST(Dropout, DrawsAnewForEachStepAndNotWithoutProbability) {
  deck::Model description = test::tiny_model();
  description.dropout = 0.5;
  test::Harness<float> model(description, {2, 9});
  randomize(model, 51);
  const std::vector<double> plain = model.logits();
  ops::DropoutKey dropout;
  dropout.probability = 0.5, dropout.seed = 1, dropout.step = 1;
  const std::vector<double> first = model.logits(dropout), again = model.logits(dropout);
  dropout.step = 2;
  EXPECT_EQ(first, again);
  EXPECT_NE(first, model.logits(dropout));
  EXPECT_NE(first, plain);
  EXPECT_EQ(plain, model.logits());
}

TEST(Accumulation, GradientsAddUpOverMicroSteps) {
  test::Harness<double> model(test::tiny_model(), {2, 7});
  randomize(model, 61);
  model.step();
  const std::vector<double> once = test::download(model.parameters->gradient);
  model.transformer->forward(model.context, model.micro());
  model.transformer->loss_backward(model.context, model.micro(), model.head, model.weights,
                                   model.losses);
  auto weight_gradients = model.transformer->weight_gradients();
  model.transformer->backward(model.context, model.micro(), weight_gradients);
  model.transformer->embed_backward(model.context, model.micro());
  std::vector<double> half = test::download(model.parameters->gradient);
  for (double& g : half) g /= 2;
  EXPECT_LT(test::relative_error(half, once), 1e-14);
}

/// A pass that scores rows `rows` only, compared with one that scores all, where the others have no
/// target.
void expect_others_ignored(const deck::Model& description, model::TransformerOptions options,
                           const std::vector<std::int32_t>& rows) {
  const std::size_t M = rows.size(), N = options.batch * options.tokens;
  options.head_rows = 3;
  test::Harness<double> all(description, options);
  options.scored = std::max<std::size_t>(M, 8);
  test::Harness<double> some(description, options);
  randomize(all, 71);
  randomize(some, 71);
  const std::vector<std::int32_t> inputs = test::random_tokens(N, 37, 72),
                                  wanted = test::random_tokens(M, 37, 73);
  std::vector<std::int32_t> targets(N, -1);
  std::vector<double> weights(N, 0), of_scored;
  for (std::size_t m = 0; m < M; ++m) {
    const auto row = static_cast<std::size_t>(rows[m]);
    targets[row] = wanted[m];
    of_scored.push_back(weights[row] = 0.5 + static_cast<double>(m % 5));
  }
  const Kokkos::View<std::int32_t*, DeviceMemory> which("rows", M), best("best", M),
      of_all("best", N);
  all.set_batch(inputs, targets);
  some.set_batch(inputs, targets);
  test::upload(rows, Vector<std::int32_t>(which.data(), M));
  test::upload(wanted, Vector<std::int32_t>(some.targets.data(), M));
  test::upload(weights, all.weights);
  test::upload(of_scored, Vector<double>(some.weights.data(), M));
  model::MicroBatch<double> of_some = some.micro();
  of_some.scored = {which, Vector<std::int32_t>(some.targets.data(), M)};
  const auto backward = [&](test::Harness<double>& model, const model::MicroBatch<double>& given) {
    const std::size_t scored = given.scored.targets.extent(0);
    const Vector<double> losses(model.losses.data(), scored), of_rows(model.weights.data(), scored);
    Kokkos::deep_copy(model.parameters->gradient, 0);
    model.transformer->forward(model.context, given);
    model.transformer->loss_backward(model.context, given, model.head, of_rows, losses);
    auto weight_gradients = model.transformer->weight_gradients();
    model.transformer->backward(model.context, given, weight_gradients);
    model.transformer->embed_backward(model.context, given);
    weight_gradients.run_later(model.context);
    model.context.fence("step");
    return test::download(losses);
  };
  const std::vector<double> full = backward(all, all.micro()), few = backward(some, of_some);
  EXPECT_LT(test::distance(test::download(some.parameters->gradient),
                           test::download(all.parameters->gradient)),
            1e-12);
  EXPECT_EQ(test::norm(test::download(some.parameters->gradient)) > 0, M > 0);
  all.transformer->forward(all.context, all.micro());
  some.transformer->forward(some.context, of_some);
  all.transformer->loss(all.context, all.micro(), all.head, all.losses, of_all);
  some.transformer->loss(some.context, of_some, some.head, Vector<double>(some.losses.data(), M),
                         best);
  some.context.fence("loss");
  for (std::size_t m = 0; m < M; ++m) {
    const auto row = static_cast<std::size_t>(rows[m]);
    EXPECT_NEAR(few[m], full[row], 1e-13);
    EXPECT_NEAR(test::download(some.losses)[m], full[row], 1e-13);
    EXPECT_EQ(test::download(best)[m], test::download(of_all)[row]);
  }
}

TEST(Scored, SomeRowsAreAllRowsWithTheOthersIgnored) {
  for (const std::vector<std::int32_t>& rows :
       {std::vector<std::int32_t>{0, 3, 4, 9, 13}, {6}, {}, {0, 1, 2, 3, 4, 5, 6, 7}})
    expect_others_ignored(test::tiny_model(), {2, 7}, rows);
}

/// The last block computes whole tiles of 128 rows, here 128 and 256 of 450.
TEST(Scored, TheLastBlockComputesSomeRowsOnly) {
  for (const std::size_t every : {23, 3}) {
    std::vector<std::int32_t> rows;
    for (std::size_t row = 1; row < 450; row += every)
      rows.push_back(static_cast<std::int32_t>(row));
    expect_others_ignored(test::tiny_model(), {3, 150}, rows);
    expect_others_ignored(test::gpt2_like(), {3, 150}, rows);
  }
}

/// Recomputed before backward, with another micro-batch's forward between them; and where all rows
/// are computed: with experts, connections, and the halves of backward apart.
TEST(Scored, SomeRowsInEveryKindOfModel) {
  const std::vector<std::int32_t> rows{0, 3, 4, 9, 13};
  model::TransformerOptions options{2, 7};
  options.recompute = true;
  expect_others_ignored(test::tiny_model(), options, rows);
  options.in_flight = 2;
  expect_others_ignored(test::tiny_model(), options, rows);
  expect_others_ignored(test::moe_like(), {2, 7}, rows);
  deck::Model connected = test::tiny_model();
  connected.input_shortcut = connected.skip_connections = true;
  expect_others_ignored(connected, {2, 7}, rows);
  options = {2, 7};
  options.weights_later = true;
  expect_others_ignored(test::tiny_model(), options, rows);
}

TEST(Memory, RecomputationTakesLessMemory) {
  deck::Model description = test::tiny_model();
  description.layers = 8;
  model::TransformerOptions options{4, 32};
  test::Harness<float> all(description, options);
  options.recompute = true;
  test::Harness<float> inputs(description, options);
  EXPECT_LT(2 * inputs.arena.bytes(Term::activations), all.arena.bytes(Term::activations));
}

TEST(HeadChunk, StaysWithinItsBounds) {
  const std::size_t V = 50304;
  EXPECT_EQ(ops::head_chunk_rows(8192, V, 4, true), 256u);
  EXPECT_EQ(ops::head_chunk_rows(300, V, 4, true), 150u);
  EXPECT_EQ(ops::head_chunk_rows(64, V, 4, true), 64u);
  EXPECT_EQ(ops::head_chunk_rows(32768, V, 2, false), 4096u);
  EXPECT_EQ(ops::head_chunk_rows(5000, V, 2, false), 2560u);
  EXPECT_EQ(ops::head_chunk_rows(2000, V, 2, false), 2000u);
  const std::size_t large = 151936, rows = ops::head_chunk_rows(32768, large, 2, false);
  EXPECT_EQ(rows, 3328u);
  EXPECT_LE(rows * large * 2, 1u << 30);
  EXPECT_EQ(ops::head_chunk_rows(100, std::size_t(1) << 20, 2, false), 100u);
  EXPECT_EQ(ops::head_chunk_rows(3, std::size_t(1) << 30, 2, false), 1u);
}

}  // namespace
}  // namespace tern
