// A small transformer whose linear maps are multiplied in 8 bits, compared with the same in bf16.
#include "model/harness.hpp"

namespace tern {
namespace {

/// All maps, the head among them, have multiples of 16 rows, inputs and outputs.
deck::Model description() {
  deck::Model m = test::tiny_model();
  m.hidden = 64, m.head_dim = 16, m.ffn_hidden = 96, m.vocabulary = 48, m.init_std = 0.1;
  return m;
}

model::TransformerOptions options(bool fp8, bool recompute = false) {
  model::TransformerOptions o{4, 16};
  o.fp8 = fp8, o.recompute = recompute;
  return o;
}

void start(test::Harness<bf16>& model) {
  model.parameters->initialize(model.context, model.tree, 3);
  model.parameters->refresh_compute(model.context);
  model.set_random_batch(8);
}

void descend(test::Harness<bf16>& model, float rate) {
  const Vector<float> master = model.parameters->master, gradient = model.parameters->gradient;
  Kokkos::parallel_for(
      "descend", Kokkos::RangePolicy<Device>(model.context.space, 0, int(master.size())),
      KOKKOS_LAMBDA(const int i) { master(i) -= rate * gradient(i); });
  model.parameters->refresh_compute(model.context);
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double dot = 0;
  for (std::size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i];
  return dot / (test::norm(a) * test::norm(b));
}

// PyTorch, rounding the same operands of such a model, has cosines from 0.981 to 0.997, and 0.990
// over all parameters: errors of 0.2 and 0.14 times the gradient; twice these are allowed here.
TEST(Fp8, GradientsPointWhereThoseOfBf16Do) {
  test::Harness<bf16> eight(description(), options(true)), sixteen(description(), options(false));
  start(eight), start(sixteen);
  const double loss = sixteen.step();
  EXPECT_NEAR(eight.step(), loss, 0.01 * loss);
  for (const model::Parameter& p : eight.tree.parameters()) {
    const auto mine = eight.gradient(p.name), its = sixteen.gradient(p.name);
    EXPECT_GT(cosine(mine, its), 0.92) << p.name;
    EXPECT_NE(mine, its) << p.name;
  }
  EXPECT_GT(cosine(test::download(eight.parameters->gradient),
                   test::download(sixteen.parameters->gradient)),
            0.96);
}

/// Also where connections change the stream's gradient between blocks, and values get embeddings.
TEST(Fp8, GradientsOfConnectedBlocksPointWhereThoseOfBf16Do) {
  deck::Model m = description();
  m.layers = 5, m.skip_connections = m.input_shortcut = true, m.value_embeddings = 2;
  m.init_scaled_residual = false;
  test::Harness<bf16> eight(m, options(true)), sixteen(m, options(false));
  start(eight), start(sixteen);
  const double loss = sixteen.step();
  EXPECT_NEAR(eight.step(), loss, 0.01 * loss);
  for (const model::Parameter& p : eight.tree.parameters())
    if (p.matrix()) {
      EXPECT_GT(cosine(eight.gradient(p.name), sixteen.gradient(p.name)), 0.92) << p.name;
    }
  EXPECT_GT(cosine(test::download(eight.parameters->gradient),
                   test::download(sixteen.parameters->gradient)),
            0.96);
}

TEST(Fp8, LearnsABatch) {
  test::Harness<bf16> model(description(), options(true));
  start(model);
  const double first = model.step();
  for (int step = 0; step < 30; ++step) {
    descend(model, 0.3f);
    model.step();
  }
  EXPECT_LT(model.loss(), 0.5 * first);
}

TEST(Fp8, RecomputationGivesTheSameBits) {
  test::Harness<bf16> kept(description(), options(true)), again(description(), options(true, true));
  start(kept), start(again);
  EXPECT_EQ(kept.step(), again.step());
  EXPECT_EQ(test::download(kept.parameters->gradient), test::download(again.parameters->gradient));
}

TEST(Fp8, PlansTheMemoryItTakes) {
  for (const bool training : {false, true}) {
    model::TransformerOptions with = options(true), without = options(false);
    with.training = without.training = training;
    test::Harness<bf16> eight(description(), with), sixteen(description(), without);
    EXPECT_EQ(eight.arena.bytes(), test::Harness<bf16>::plan(description(), eight.tree, with));
    const std::size_t rows = 64, ffn = 2 * 96, hidden = 64, scale = aligned(20);
    const std::size_t values = rows * (training ? ffn : hidden) + ffn * hidden;
    std::size_t expected = sixteen.arena.bytes() + aligned(2 * values) +
                           aligned(training ? 2 * rows * ffn : 0) + aligned(rows * 96) +
                           aligned(ffn * hidden) + scale;
    if (training) {
      // Per layer the inputs of four maps and two gradients have scales, and four weights, in both
      // layouts; then the stream's gradient. The head has scales of its input and its gradient.
      std::size_t weights = 0;
      for (const auto& [inputs, outputs] : eight.transformer->maps())
        weights += 2 * aligned(inputs * outputs) + scale;
      expected += static_cast<std::size_t>(description().layers) * (6 * scale + weights) + scale +
                  aligned(4) +  // count of saturated numbers
                  2 * scale + aligned(sizeof(float) * rows);
    } else {
      expected += 6 * scale;
    }
    EXPECT_EQ(eight.arena.bytes(), expected);
  }
}

/// Gradient of a batch that is seen a second time, as the first micro-batch of a step or as a later
/// one; the weights may change in between.
std::vector<double> second_gradient(bool first, double parameters_between) {
  test::Harness<bf16> model(description(), options(true));
  start(model);
  model.step();
  if (parameters_between != 0) descend(model, static_cast<float>(parameters_between));
  model.first = first;
  model.step();
  return test::download(model.parameters->gradient);
}

// A step's later micro-batches have the scales and the weights of its first one.
TEST(Fp8, LaterMicroBatchesHaveTheScalesOfTheFirst) {
  const auto first = second_gradient(true, 0), later = second_gradient(false, 0);
  EXPECT_GT(cosine(first, later), 0.99);
  EXPECT_NE(first, later);  // with headroom
  const auto moved = second_gradient(true, 3), kept = second_gradient(false, 3);
  EXPECT_LT(cosine(moved, kept), cosine(first, later));
}

// Biases take their gradients in full precision, also where operands are written in fp8.
TEST(Fp8, GradientsOfBiasesPointWhereThoseOfBf16Do) {
  deck::Model biased = test::gpt2_like();
  biased.hidden = 64, biased.head_dim = 16, biased.ffn_hidden = 96, biased.init_std = 0.1;
  test::Harness<bf16> eight(biased, options(true)), sixteen(biased, options(false));
  start(eight), start(sixteen);
  sixteen.step();
  for (const bool first : {true, false}) {
    eight.first = first;
    eight.step();
    for (const model::Parameter& p : eight.tree.parameters()) {
      const bool of_keys = p.name.ends_with("k_proj/bias");  // 0 but for rounding
      if (of_keys || !p.name.ends_with("_proj/bias")) continue;
      EXPECT_GT(cosine(eight.gradient(p.name), sixteen.gradient(p.name)), 0.92)
          << p.name << (first ? "" : ", later micro-batch");
    }
  }
}

// Where no size fits, fp8 is bf16 to the bit.
TEST(Fp8, OddRowsAreMultipliedInBf16) {
  test::Harness<bf16> eight(description(), {.batch = 3, .tokens = 7, .fp8 = true});
  test::Harness<bf16> sixteen(description(), {3, 7});
  start(eight), start(sixteen);
  EXPECT_EQ(eight.step(), sixteen.step());
  EXPECT_EQ(test::download(eight.parameters->gradient),
            test::download(sixteen.parameters->gradient));
}

}  // namespace
}  // namespace tern
