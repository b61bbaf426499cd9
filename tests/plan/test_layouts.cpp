// The table of a training deck for other numbers of ranks.
#include "plan/layouts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>

#include "base/error.hpp"
#include "plan/measured_rate.hpp"
#include "plan/small_model.hpp"
#include "refusal.hpp"
#include "workload/division.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;

deck::Deck small_deck() {
  deck::Deck deck;
  deck.model = test::small_model(64, 2000);
  deck.batch.per_rank = 2, deck.batch.global = 16;
  deck.cost.dollars_per_gpu_hour = 2;
  deck.data.tokenizer = "bytes";
  deck.output.directory = fs::path(testing::TempDir()) / "tern_layouts";
  fs::remove_all(deck.output.directory);
  return deck;
}

/// Leaves a run with this rate, in tokens/s.
void leave_a_run(const deck::Deck& deck, const plan::Plan& plan, double rate) {
  fs::create_directories(deck.output.directory);
  plan::store_rate(deck.output.directory, plan::rate_key(plan, {1, 1, 1}),
                   {0.9 * rate, rate, 1.2 * rate});
}

/// The words of the row with this many data ranks.
std::vector<std::string> row(const std::string& table, int data) {
  const auto at = table.find("\n     " + std::to_string(data) + " ");
  if (at == std::string::npos) return {};
  std::istringstream line(table.substr(at + 1, table.find('\n', at + 1) - at - 1));
  return {std::istream_iterator<std::string>(line), {}};
}

TEST(Layouts, OnlyTheDecksOwnPlanReadsTheLastRun) {
  const deck::Deck deck = small_deck();
  const auto mesh = comm::Mesh::for_planning({1, 1, 1});
  const plan::Plan memory = plan::plan_memory(deck, *mesh);
  leave_a_run(deck, memory, 1000);
  const plan::Plan plan = plan::make_plan(deck, *mesh);
  ASSERT_TRUE(plan.rate);
  EXPECT_EQ(plan.rate->first, 1000);
  EXPECT_FALSE(memory.rate);
  EXPECT_EQ(memory.total_bytes, plan.total_bytes);
  EXPECT_EQ(memory.memory, plan.memory);
  EXPECT_EQ(memory.tokens, plan.tokens);
  leave_a_run(deck, plan, 5000);  // not what the plan was made with
  const std::string table = plan::layouts(deck, plan, {1, 1, 1});
  for (const int data : {1, 2, 4, 8}) {
    const auto words = row(table, data);
    ASSERT_EQ(words.size(), 9u) << table;
    EXPECT_EQ(words[4], std::to_string(data) + ",000");
    EXPECT_EQ(words[5], std::to_string(deck.campaign.max_steps));
  }
}

/// The reader decides whether the deck can be fully sharded; the table then has a column for it.
TEST(Layouts, LeaveOpenWhatTheDeckWouldRefuse) {
  using Change = std::function<void(deck::Deck&)>;
  const Change changes[] = {[](deck::Deck&) {}, [](deck::Deck& d) { d.parallel.tensor = 2; },
                            [](deck::Deck& d) { d.parallel.pipeline = 3; },
                            [](deck::Deck& d) { d.optimizer.kind = "muon"; },
                            [](deck::Deck& d) {
                              d.objective.kind = "block_diffusion";
                              d.data.train = d.data.valid = {"problems.jsonl"};
                              d.evaluation.problems = 10;
                            }};
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    deck::Deck deck = small_deck();
    changes[i](deck);
    const comm::Extents extents{1, static_cast<int>(deck.parallel.tensor),
                                static_cast<int>(deck.parallel.pipeline)};
    const plan::Plan plan = plan::make_plan(deck, *comm::Mesh::for_planning(extents));
    const auto words = row(plan::layouts(deck, plan, extents), 8);
    ASSERT_EQ(words.size(), 4u) << i;
    deck.parallel.shard = "full";
    std::string refusal;
    try {
      deck::parse(deck::print(deck, false), "d", {});
    } catch (const UserError& e) {
      refusal = e.what();
    }
    EXPECT_EQ(refusal.find("parallel.shard: ") != std::string::npos, i > 0) << refusal;
    EXPECT_EQ(refusal.empty(), i == 0) << refusal;
    EXPECT_EQ(words[3] == "-", i > 0) << i;
    EXPECT_NE(words[1], "-") << i;
  }
}

std::string refusal(const deck::Model& m, int tensor, int pipeline) {
  return test::refusal([&] { workload::check_division(m, tensor, pipeline); });
}

TEST(Division, ModelsThatCannotBeDividedAreRefused) {
  deck::Model m;
  m.layers = 2, m.hidden = 8, m.heads = 4, m.kv_heads = 2, m.head_dim = 4, m.ffn_hidden = 40;
  m.vocabulary = 37;
  EXPECT_EQ(refusal(m, 1, 2), "taken");
  EXPECT_NE(refusal(m, 2, 1).find("vocabulary = 37 is not a multiple of it (nearest: 36 or 38)"),
            std::string::npos);
  m.vocabulary = 40;
  EXPECT_EQ(refusal(m, 4, 1), "taken");
  EXPECT_NE(refusal(m, 8, 1).find("heads = 4 is not a multiple of it (nearest: 8)"),
            std::string::npos);
  EXPECT_NE(refusal(m, 8, 1).find("set tensor to one of 1, 2, 4"), std::string::npos);
  EXPECT_NE(refusal(m, 1, 3).find("pipeline = 3 is more than the model's 2 layers"),
            std::string::npos);
}

}  // namespace
}  // namespace tern
