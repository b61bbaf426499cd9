// What the objective's numbers mean: blocks of one token give the autoregressive likelihood, longer
// ones an unbiased estimate of the bound.
#include "objective/block_diffusion.hpp"
#include "objective/harness.hpp"

namespace tern {
namespace {

using objective::detail::BlockRows;
using objective::detail::Clip;
using test::flat;
using test::Made;

constexpr std::int32_t vocabulary = 23, mask = vocabulary - 1;

template <class V>
Kokkos::View<V*, DeviceMemory> on_device(const std::vector<V>& values) {
  const Kokkos::View<V*, DeviceMemory> result("on device", values.size());
  const auto host = Kokkos::create_mirror_view(result);
  for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
  Kokkos::deep_copy(result, host);
  return result;
}

/// -log p(tokens after the prefix | prefix), one forward pass a token: row i holds the tokens
/// before it, then a mask token in its place; what comes after is not seen. A token sees those up
/// to itself, the prefix all of the prefix.
double autoregressive(const deck::Model& description, unsigned seed,
                      const std::vector<std::int32_t>& tokens, std::size_t prefix) {
  const std::size_t n = tokens.size(), rows = n - prefix;
  test::Harness<double> model(description, {rows, n});
  test::Pass<double> weights(test::tiny_deck("flat"), 1, 2);
  weights.randomize(seed);
  Kokkos::deep_copy(model.parameters->master, weights.parameters->master);
  model.parameters->refresh_compute(model.context);
  std::vector<std::int32_t> inputs, targets(rows * n, -1);
  ops::SpanTable table(rows, n);
  for (std::size_t r = 0; r < rows; ++r) {
    inputs.insert(inputs.end(), tokens.begin(), tokens.end());
    inputs[r * n + prefix + r] = mask;
    targets[r * n + prefix + r] = tokens[prefix + r];
    for (std::size_t q = 0; q < n; ++q)
      table.at(r, q).context = {0, static_cast<std::int32_t>(std::max(prefix, q + 1))};
  }
  table.finish();
  const auto spans = on_device(table.spans());
  const auto hulls = on_device(table.hulls());
  model.pattern = table.pattern(spans.data(), hulls.data());
  model.head.vocabulary = vocabulary - 1;
  model.set_batch(inputs, targets);
  return model.loss() * static_cast<double>(rows);
}

TEST(Likelihood, OfBlocksOfOneTokenIsTheAutoregressiveOne) {
  const deck::Deck deck = test::tiny_deck("flat");
  const std::vector<Made> samples = {flat(0, 0, 12, 1), flat(0, 3, 8, 1), flat(1, 5, 10, 1)};
  const data::Batch batch =
      test::batch_of(samples, 2, 48, test::random_tokens_of(samples, vocabulary, 6));
  test::Pass<double> pass(deck, 2, 48);
  pass.randomize(8);
  double expected = 0;
  const auto& [tokens, pieces] = batch.as<data::SampleRows>();
  for (const data::SamplePiece& piece : pieces) {
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(piece.first);
    expected += autoregressive(deck.model, 8, {first, first + piece.tokens()}, piece.prefix);
  }
  const objective::Score score = pass.evaluate({batch});
  EXPECT_EQ(score.tokens, 30);
  std::printf("mean loss %.15f, autoregressive %.15f\n", score.loss, expected / 30);
  EXPECT_NEAR(score.loss, expected / 30, 1e-13);
  EXPECT_NEAR(pass.loss(batch), expected / 30, 1e-13);  // in training, too
}

// ---- the bound

constexpr std::size_t prefix = 3, body = 7, block = 4, positions = prefix + 2 * body;

std::vector<Made> copies(std::uint32_t rows) {
  std::vector<Made> samples;
  for (std::uint32_t r = 0; r < rows; ++r) samples.push_back(flat(r, prefix, body, block));
  return samples;
}

const std::vector<std::int32_t> sentence = {4, 9, 1, 17, 3, 12, 0, 21, 5, 5};

/// `rows` times the sentence, as step number `step`.
data::Batch sentences(std::uint32_t rows, std::uint64_t step) {
  std::vector<std::int32_t> tokens;
  for (std::uint32_t r = 0; r < rows; ++r)
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
  data::Batch batch = test::batch_of(copies(rows), rows, positions, tokens, rows * step);
  batch.step_number = step;
  return batch;
}

/// Loss of the masked tokens of each block, for each set of them: row m of 16 masks token i of a
/// block where bit i of m is set.
std::vector<std::vector<double>> losses_of_masks(unsigned seed) {
  constexpr std::uint32_t sets = 1u << block;
  test::Pass<double> pass(test::tiny_deck("flat"), sets, positions);
  pass.randomize(seed);
  BlockRows rows(sets, positions, mask);
  objective::detail::Noise all;
  all.clip.fill({1, 1});
  rows.fill(sentences(sets, 0), all);
  std::vector<std::int32_t> tokens = rows.tokens(), scored;
  for (std::uint32_t m = 0; m < sets; ++m)
    for (std::size_t i = 0; i < body; ++i) {
      const std::size_t at = m * positions + prefix + body + i;
      scored.push_back(static_cast<std::int32_t>(at));
      if ((m >> i % block & 1) == 0) tokens[at] = sentence[prefix + i];
    }
  EXPECT_EQ(scored, rows.masked());
  const auto inputs = on_device(tokens), places = on_device(rows.positions()),
             wanted = on_device(rows.targets()), which = on_device(scored);
  const auto spans = on_device(rows.table().spans());
  const auto hulls = on_device(rows.table().hulls());
  const Kokkos::View<double*, DeviceMemory> losses("losses", scored.size());
  model::Rows of_pass{inputs};
  of_pass.positions = places;
  const model::MicroBatch<double> given{
      of_pass, rows.table().pattern(spans.data(), hulls.data()), {which, wanted}};
  pass.transformer->forward(pass.context, given);
  pass.transformer->loss(pass.context, given, pass.objective->head(), losses);
  pass.context.fence("losses");
  const std::vector<double> host = test::download(losses);
  std::vector<std::vector<double>> result(2, std::vector<double>(sets, 0));
  for (std::uint32_t m = 0; m < sets; ++m)
    for (std::size_t i = 0; i < body; ++i)
      if (m >> i % block & 1) result[i / block][m] += host[m * body + i];
  return result;
}

/// Mean loss of a token over times in the interval. Gauss-Legendre with three nodes is exact: the
/// integrand is a polynomial of degree three, or four where the weight is 1.
double quadrature(const std::vector<std::vector<double>>& losses, const Clip& clip) {
  const double node = std::sqrt(0.6);
  const std::pair<double, double> rule[] = {{-node, 5. / 18}, {0, 8. / 18}, {node, 5. / 18}};
  double sum = 0;
  for (std::size_t b = 0; b < losses.size(); ++b) {
    const std::size_t n = std::min(block, body - b * block);
    for (const auto& [x, weight] : rule) {
      const double t = (clip.low + clip.high) / 2 + (clip.high - clip.low) / 2 * x;
      for (std::uint32_t m = 1; m < 1u << n; ++m) {
        const int k = __builtin_popcount(m);
        const double probability = std::pow(t, k) * std::pow(1 - t, static_cast<double>(n) - k);
        sum += weight * probability * losses[b][m] / (clip.low > 0.5 ? 1 : t);
      }
    }
  }
  return sum / body;
}

struct Estimate {
  double mean = 0, error = 0;  // standard error
};

/// From independent numbers.
Estimate estimate(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate e;
  for (const double v : values) e.mean += v / n;
  for (const double v : values) e.error += (v - e.mean) * (v - e.mean);
  e.error = std::sqrt(e.error / (n - 1) / n);
  return e;
}

void expect_unbiased(const Estimate& e, double expected, const char* what) {
  std::printf(
      "%s: mean of 10,000 draws %.5f, standard error %.5f; quadrature %.5f (%.1f standard "
      "errors)\n",
      what, e.mean, e.error, expected, (e.mean - expected) / e.error);
  EXPECT_LT(std::abs(e.mean - expected), 4 * e.error);
  EXPECT_LT(e.error, 0.01 * expected);
}

TEST(Bound, IsEstimatedWithoutBias) {
  constexpr std::uint32_t rows = 250;
  constexpr std::uint64_t steps = 40;
  constexpr unsigned seed = 12;
  const auto losses = losses_of_masks(seed);
  for (const Clip clip : {Clip{1e-3, 1}, Clip{0.3, 0.8}, Clip{0.6, 1}}) {
    deck::Deck deck = test::tiny_deck("flat");
    deck.objective.clip_low = clip.low, deck.objective.clip_high = clip.high;
    test::Pass<double> pass(deck, rows, positions);
    pass.randomize(seed);
    std::vector<double> training, evaluation;
    for (std::uint64_t step = 0; step < steps; ++step) {
      training.push_back(pass.loss(sentences(rows, step)));
      if (clip.high < 1) evaluation.push_back(pass.evaluate({sentences(rows, step)}).loss);
    }
    const std::string name = fmt::format("times in [{}, {}]", clip.low, clip.high);
    expect_unbiased(estimate(training), quadrature(losses, clip), name.c_str());
    if (!evaluation.empty())
      expect_unbiased(estimate(evaluation), quadrature(losses, {}),
                      "evaluation, whatever the clip");
  }
}

}  // namespace
}  // namespace tern
