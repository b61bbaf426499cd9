// The plan of serving: as many pages as fit, and the run takes what the plan says.
#include "plan/serving.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "plan/small_model.hpp"

namespace tern {
namespace {

deck::Deck small_deck() {
  deck::Deck deck;
  deck.model = test::small_model(256, 300);
  deck.generation.batch = 8, deck.generation.max_model_len = 200;
  deck.generation.prefill_tokens = 64;
  deck.generation.temperature = 0.7, deck.generation.top_k = 5;
  return deck;
}

void expect_run_as_planned(const deck::Deck& deck, std::size_t bytes_of_head) {
  const auto alone = comm::single_rank_mesh();
  const plan::ServingPlan plan = plan::plan_serving(deck, workload::engine_options(deck), *alone);
  EXPECT_EQ(plan.options.pages, 8u * 13);  // 200 tokens in pages of 16
  EXPECT_EQ(plan.cache_tokens, 8u * 13 * 16);
  EXPECT_EQ(plan.page_bytes, 2u * 3 * 2 * 16 * bytes_of_head);
  std::size_t sum = 0;
  for (const auto& [term, bytes] : plan.memory) sum += bytes;
  EXPECT_EQ(sum, plan.total_bytes);
  Arena arena(plan.total_bytes);
  workload::Serving<float> serving(deck, plan.options, *alone, arena);
  EXPECT_EQ(arena.bytes(), plan.total_bytes);
  serving.parameters.initialize(serving.context, serving.tree, 1);
  serving.engine.prepare(serving.context);
  serving.engine.submit({1, {1, 2, 3}, 4});
  std::vector<generate::Answer> answers;
  while (serving.engine.busy())
    for (generate::Answer& a : serving.engine.step(serving.context)) answers.push_back(a);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].tokens.size(), 4u);
}

TEST(ServingPlan, IsWhatTheRunTakes) {
  deck::Deck deck = small_deck();
  expect_run_as_planned(deck, 16 * sizeof(float));
  deck.generation.cache_quantization = "fp8";
  expect_run_as_planned(deck, 16 + sizeof(float));  // codes and a scale
}

TEST(ServingPlan, TakesTheDecksOptions) {
  deck::Deck deck = small_deck();
  generate::EngineOptions options = workload::engine_options(deck);
  EXPECT_EQ(options.batch, 8u);
  EXPECT_EQ(options.max_model_len, 200u);
  EXPECT_EQ(options.prefill_tokens, 64u);
  EXPECT_EQ(options.sampling.temperature, 0.7);
  EXPECT_EQ(options.sampling.top_k, 5);
  EXPECT_EQ(options.sampling.seed, 1337u);
  deck.model.position = "learned";
  deck.generation.max_model_len = 1000;
  EXPECT_EQ(workload::engine_options(deck).max_model_len, 256u);
}

/// A small fraction of the device holds fewer pages than the batch could use, and no more than fit.
TEST(ServingPlan, PagesFollowFromTheShareOfMemory) {
  deck::Deck deck = small_deck();
  deck.generation.batch = 256, deck.generation.max_model_len = 4096;
  deck.generation.prefill_tokens = 16;
  const auto alone = comm::single_rank_mesh();
  const auto free = static_cast<double>(device_capacity().free_bytes);
  deck.generation.memory_utilization = std::min(1.0, 300e6 / free);
  const plan::ServingPlan plan = plan::plan_serving(deck, workload::engine_options(deck), *alone);
  EXPECT_LT(plan.options.pages, 256u * 256);
  EXPECT_GE(plan.options.pages, 256u);
  EXPECT_LE(plan.total_bytes, plan.usable_bytes);
  EXPECT_GT(plan.total_bytes + 2 * plan.page_bytes + 6 * Arena::alignment, plan.usable_bytes);
  EXPECT_NE(plan::table(plan).find(fmt::format("{} of 12 KiB", plan.options.pages)),
            std::string::npos);
}

TEST(ServingPlan, TooLittleMemoryForOneRequestIsAnError) {
  deck::Deck deck = small_deck();
  const auto alone = comm::single_rank_mesh();
  deck.generation.memory_utilization = 1e-9;
  EXPECT_THROW(plan::plan_serving(deck, workload::engine_options(deck), *alone), UserError);
}

}  // namespace
}  // namespace tern
