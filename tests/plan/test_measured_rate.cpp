// An earlier run's rate counts only for the same device, ranks, batch, precision and model.
#include "plan/measured_rate.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "plan/devices.hpp"
#include "plan/small_model.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;

deck::Deck small_deck() {
  deck::Deck deck;
  deck.model = test::small_model(64, 2000);
  deck.batch.per_rank = 2, deck.batch.global = 16;
  deck.output.directory = fs::path(testing::TempDir()) / "tern_measured_rate";
  fs::remove_all(deck.output.directory);
  fs::create_directories(deck.output.directory);
  return deck;
}

plan::Plan planned(const deck::Deck& deck, const comm::Extents& extents = {},
                   const plan::PlannedDevice& device = {}) {
  return plan::make_plan(deck, *comm::Mesh::for_planning(extents), device);
}

void leave_a_run(const deck::Deck& deck, const std::vector<double>& rates) {
  plan::store_rate(deck.output.directory, plan::rate_key(planned(deck), {}), rates);
}

TEST(MeasuredRate, IsTheMedianOfARun) {
  const deck::Deck deck = small_deck();
  leave_a_run(deck, {100, 200});  // too few to tell
  EXPECT_FALSE(planned(deck).rate);
  leave_a_run(deck, {100, 5000, 1000, 1100, 900});
  const plan::Plan plan = planned(deck);
  ASSERT_TRUE(plan.rate);
  EXPECT_EQ(plan.rate->first, 1000);
  EXPECT_TRUE(plan.measured);
  EXPECT_NE(plan.rate->second.find("measured by the run in"), std::string::npos);
}

TEST(MeasuredRate, CountsInTheSameCircumstancesAlone) {
  const deck::Deck deck = small_deck();
  leave_a_run(deck, {1000, 1000, 1000});
  ASSERT_TRUE(planned(deck).measured);
  const std::function<void(deck::Deck&)> changes[] = {
      [](deck::Deck& d) { d.precision.compute = "bf16"; },
      [](deck::Deck& d) { d.precision.recompute = "block"; },
      [](deck::Deck& d) { d.batch.per_rank = 4; },
      [](deck::Deck& d) { d.batch.global = 8; },
      [](deck::Deck& d) { d.parallel.shard = "optimizer"; },
      [](deck::Deck& d) { d.model.layers = 4; },
      [](deck::Deck& d) { d.model.context = 32; }};
  for (const auto& change : changes) {
    deck::Deck other = deck;
    change(other);
    EXPECT_FALSE(planned(other).measured);
  }
  EXPECT_FALSE(planned(deck, {2, 1, 1}).measured);
  EXPECT_FALSE(planned(deck, {1, 2, 1}).measured);
  const plan::Plan there = planned(deck, {}, plan::PlannedDevice("h200"));  // not a laptop's rate
  ASSERT_TRUE(there.rate);
  EXPECT_FALSE(there.measured);
  EXPECT_NE(there.rate->first, 1000);
  EXPECT_TRUE(planned(deck).measured);
}

TEST(MeasuredRate, OfADamagedFileIsNone) {
  const deck::Deck deck = small_deck();
  for (const char* text : {"", "{", "[1]", "{\"of\": 3}", "{\"of\": null, \"date\": 1}",
                           "{\"tokens_per_second\": 1, \"date\": \"today\"}"}) {
    std::ofstream(fs::path(deck.output.directory) / "rate.json") << text;
    EXPECT_FALSE(planned(deck).rate) << text;
  }
  std::ofstream(fs::path(deck.output.directory) / "rate.json")
      << R"({"of": ")" << plan::rate_key(planned(deck), {}) << R"("})";
  EXPECT_FALSE(planned(deck).rate);
}

}  // namespace
}  // namespace tern
