// Ranks that divide a model give the answers of one rank, and agree on the pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/serving.hpp"

namespace tern {
namespace {

using Answers = std::map<std::uint64_t, std::vector<std::int32_t>>;

deck::Deck small_deck() {
  deck::Deck deck;
  deck::Model& m = deck.model;
  m.layers = 4, m.hidden = 32, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.ffn_hidden = 48;
  m.context = 128, m.vocabulary = 64, m.qk_norm = true, m.init_std = 0.3;
  m.init_scaled_residual = false;
  deck.generation.batch = 5, deck.generation.max_model_len = 96;
  deck.generation.prefill_tokens = 24, deck.generation.temperature = 0.9;
  return deck;
}

/// Twelve requests, some with a common prefix, from few pages.
Answers answer(const deck::Deck& deck, const comm::Mesh& mesh) {
  generate::EngineOptions options = workload::engine_options(deck);
  options.pages = 14;
  const plan::ServingPlan plan = plan::plan_serving(deck, options, mesh);
  EXPECT_EQ(plan.options.pages, 14u);
  Arena arena(plan.total_bytes);
  workload::Serving<float> serving(deck, plan.options, mesh, arena);
  EXPECT_EQ(arena.bytes(), plan.total_bytes);
  serving.parameters.initialize(serving.context, serving.tree, 7);
  serving.engine.prepare(serving.context);
  for (std::uint64_t i = 0; i < 12; ++i) {
    std::vector<std::int32_t> prompt(i % 2 ? 40 : 3, 5);
    for (std::uint64_t t = 0; t <= 3 * i; ++t)
      prompt.push_back(static_cast<std::int32_t>((i * 7 + t * t) % 64));
    serving.engine.submit({i, prompt, 10 + i});
  }
  Answers answers;
  while (serving.engine.busy())
    for (const generate::Answer& a : serving.engine.step(serving.context)) answers[a.id] = a.tokens;
  return answers;
}

TEST(Serving, GivesTheAnswersOfOneRankHoweverTheModelIsDivided) {
  const deck::Deck deck = small_deck();
  const Answers expected = answer(deck, *comm::single_rank_mesh());
  ASSERT_EQ(expected.size(), 12u);
  EXPECT_NE(expected.at(0), expected.at(2));
  const int ranks = comm::world()->size();
  for (int tensor = 1; tensor <= ranks; tensor *= 2) {
    const comm::Extents extents{1, tensor, ranks / tensor};
    const std::size_t kv_replicas =
        model::kv_replicas(deck.model, static_cast<std::size_t>(tensor));
    const comm::Mesh mesh(comm::world(), extents, static_cast<int>(kv_replicas));
    EXPECT_EQ(answer(deck, mesh), expected) << "tensor " << tensor << " of " << ranks;
  }
}

}  // namespace
}  // namespace tern
