// The whole optimizer step compared with AdamW written out, for every sharding and number of ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "model/declare.hpp"
#include "optimizer/optimizer.hpp"

namespace tern::optimizer {
namespace {

deck::Deck small_deck(const std::string& shard) {
  deck::Deck deck;
  deck.model.layers = 1;
  deck.model.hidden = 8;
  deck.model.heads = deck.model.kv_heads = 2;
  deck.model.head_dim = 4;
  deck.model.ffn_hidden = 12;
  deck.model.vocabulary = 32;
  deck.model.context = 8;
  deck.optimizer.grad_clip = 0.5;
  deck.parallel.shard = shard;
  return deck;
}

/// Everything an optimizer step touches, on this rank.
struct OptimizerStep {
  explicit OptimizerStep(const std::string& shard) : OptimizerStep(small_deck(shard)) {}
  explicit OptimizerStep(const deck::Deck& given)
      : deck(given),
        group(comm::world()),
        tree(model::declare(deck.model), static_cast<std::size_t>(group->size())),
        arena(std::size_t{1} << 20),
        context(ops::make_context(arena, false, "auto")),  // the step makes no matrix products
        parameters(tree, model::Purpose::training, arena),
        optimizer(deck, tree, parameters, *group, arena) {
    parameters.initialize(context, tree, 7);
    parameters.refresh_compute(context);
  }
  /// This rank's gradient: a function of (element, rank, step).
  static double gradient(std::size_t i, int rank, int step) {
    return std::sin(0.37 * static_cast<double>(i) + rank + 0.5 * step) / (1 + rank);
  }
  void set_gradients(int step) {
    auto host = Kokkos::create_mirror_view(Kokkos::HostSpace{}, parameters.gradient);
    for (std::size_t i = 0; i < host.extent(0); ++i) host(i) = 0;
    for (const auto& p : tree.parameters())
      for (std::size_t i = p.offset; i < p.offset + p.count; ++i)
        host(i) = gradient(i, group->rank(), step);
    Kokkos::deep_copy(parameters.gradient, host);
  }
  std::vector<double> values() const {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, parameters.compute);
    return {host.data(), host.data() + host.extent(0)};
  }

  deck::Deck deck;
  std::unique_ptr<comm::Group> group;
  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  model::Parameters<double> parameters;
  Optimizer<double> optimizer;
};

/// AdamW of Loshchilov & Hutter, algorithm 2, with the global norm clipped, on plain arrays.
struct Reference {
  std::vector<double> w, m, v;
  double norm = 0;
  void step(const OptimizerStep& s, int number, double rate) {
    m.resize(w.size());
    v.resize(w.size());
    std::vector<double> g(w.size(), 0.0);
    double squares = 0;
    for (const auto& p : s.tree.parameters())
      for (std::size_t i = p.offset; i < p.offset + p.count; ++i) {
        for (int rank = 0; rank < s.group->size(); ++rank)
          g[i] += OptimizerStep::gradient(i, rank, number);
        squares += g[i] * g[i];
      }
    norm = std::sqrt(squares);
    const auto& o = s.deck.optimizer;
    const double scale = std::min(1.0, o.grad_clip / norm);
    for (const auto& p : s.tree.parameters())
      for (std::size_t i = p.offset; i < p.offset + p.count; ++i) {
        const double clipped = scale * g[i];
        m[i] = o.betas[0] * m[i] + (1 - o.betas[0]) * clipped;
        v[i] = o.betas[1] * v[i] + (1 - o.betas[1]) * clipped * clipped;
        const double mean = m[i] / (1 - std::pow(o.betas[0], number));
        const double square = v[i] / (1 - std::pow(o.betas[1], number));
        if (p.matrix()) w[i] -= rate * o.weight_decay * w[i];
        w[i] -= rate * mean / (std::sqrt(square) + o.eps);
      }
  }
};

class Sharding : public testing::TestWithParam<const char*> {};

TEST_P(Sharding, FollowsTheDefinitionOfAdamW) {
  OptimizerStep s(GetParam());
  Reference reference{s.values(), {}, {}};
  for (int step = 1; step <= 5; ++step) {
    const double rate = 0.01 * step;
    s.set_gradients(step);
    s.optimizer.reduce_gradients(s.context);
    const auto outcome = s.optimizer.update(s.context, rate, step);
    s.optimizer.gather_parameters(s.context);
    reference.step(s, step, rate);
    EXPECT_TRUE(outcome.applied);
    EXPECT_NEAR(outcome.gradient_norm, reference.norm, 1e-12 * reference.norm);
  }
  const auto values = s.values();
  for (const auto& p : s.tree.parameters())
    for (std::size_t i = p.offset; i < p.offset + p.count; ++i)
      ASSERT_NEAR(values[i], reference.w[i], 1e-12) << p.name;
}

TEST_P(Sharding, AGradientThatIsNotFiniteChangesNothing) {
  OptimizerStep s(GetParam());
  const auto before = s.values();
  s.set_gradients(1);
  if (s.group->rank() == s.group->size() - 1)
    Kokkos::deep_copy(Kokkos::subview(s.parameters.gradient, 5), std::nan(""));
  s.optimizer.reduce_gradients(s.context);
  const auto outcome = s.optimizer.update(s.context, 0.1, 1);
  s.optimizer.gather_parameters(s.context);
  EXPECT_FALSE(outcome.applied);
  EXPECT_EQ(s.values(), before);
}

/// d = min(ema, (1 + n) / (10 + n)): 2/11, 3/12, 4/13, 5/14, then 0.4. The average starts as the
/// initial weights.
TEST_P(Sharding, TheAverageForgetsTheFirstWeightsFast) {
  deck::Deck deck = small_deck(GetParam());
  deck.optimizer.ema = 0.4;
  OptimizerStep s(deck);
  s.optimizer.start_average(s.context);
  std::vector<double> average = s.values();
  for (int step = 1; step <= 7; ++step) {
    s.set_gradients(step);
    s.optimizer.reduce_gradients(s.context);
    s.optimizer.update(s.context, 0.1, step);
    s.optimizer.gather_parameters(s.context);
    const std::vector<double> weights = s.values();
    const double d = step < 5 ? (1.0 + step) / (10 + step) : 0.4;
    for (std::size_t i = 0; i < weights.size(); ++i)
      average[i] = d * average[i] + (1 - d) * weights[i];
    s.optimizer.exchange_average(s.context);
    const std::vector<double> found = s.values();
    for (const auto& p : s.tree.parameters())
      for (std::size_t i = p.offset; i < p.offset + p.count; ++i)
        ASSERT_NEAR(found[i], average[i], 1e-12) << p.name << " after update " << step;
    s.optimizer.exchange_average(s.context);
    ASSERT_EQ(s.values(), weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Sharding, testing::Values("none", "optimizer"));

TEST(OwnedRange, PartsCoverTheSpanOnce) {
  for (const int ranks : {1, 2, 3, 8}) {
    const std::size_t length = 48 * 10;
    std::size_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range range = owned_range("optimizer", length, rank, ranks);
      EXPECT_EQ(range.first, next);
      next += range.count;
    }
    EXPECT_EQ(next, length);
    EXPECT_EQ(owned_range("none", length, 0, ranks).count, length);
  }
}

}  // namespace
}  // namespace tern::optimizer
