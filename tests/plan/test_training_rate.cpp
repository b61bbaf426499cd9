// The estimate of how fast a deck trains, compared with measurements.
#include "plan/training_rate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/devices.hpp"
#include "plan/plan.hpp"

namespace tern {
namespace {

constexpr double tolerance = 0.08;

using Set = std::vector<std::string>;

/// Averages per row of the decks' data: samples, tokens that are given, and that are learned.
constexpr plan::RowContents quickstart_rows{1.93, 46.5, 38, 0, false},
    teacher_rows{1, 0, 45, 191.7, false}, chats{2.45, 0, 247, 247, false};

struct Measured {
  const char* deck;  // below the source
  Set set;
  const char* device;
  comm::Extents ranks;
  double rate;  // tokens/s of all ranks
  const plan::RowContents* rows = nullptr;
};

Set fp8(Set set = {}) {
  set.push_back("precision.compute='fp8'");
  return set;
}
Set tf32(Set set) {
  set.push_back("precision.compute='tf32'");
  return set;
}
Set global(int sequences) { return {fmt::format("batch.global={}", sequences)}; }
Set shard(const char* kind, Set set = {}) {
  set.push_back(fmt::format("parallel.shard='{}'", kind));
  return set;
}
Set divided(int tensor, int pipeline) {
  return shard("none", {"batch.global=256", fmt::format("parallel.tensor={}", tensor),
                        fmt::format("parallel.pipeline={}", pipeline)});
}
/// TRM's first deck with states detached after each answer, as first measured.
Set detached(int sequences, int accumulation) {
  return {"objective.detach_from=0", "batch.per_rank=32", fmt::format("batch.global={}", sequences),
          fmt::format("batch.accumulation={}", accumulation)};
}
const Set whole_rows{"batch.preset='none'", "batch.per_rank=128", "batch.global=128"};
const Set untied_rows{"batch.preset='none'", "batch.per_rank=128", "batch.global=256",
                      "model.tie_embeddings=F", "model.dropout=0"};

constexpr comm::Extents one{1, 1, 1}, two{2, 1, 1}, four{4, 1, 1};
const char *gpt = "input/h100_gpt350m", *fast = "input/h100x8_trm_fast",
           *extreme = "input/h100x8_trm_extreme", *bd3lm = "input/bd3lm_text",
           *qwen = "bench/qwen3_4b_supervised", *quickstart = "input/quickstart",
           *laptop = "input/laptop_gpt", *trm = "input/trm_small",
           *teacher = "input/distill_small_teacher_train";

/// Medians from the trainer's own log, 2026-11-22 except where stated.
const std::vector<Measured>& measured() {
  static const std::vector<Measured> all{
      {gpt, {}, "h200", one, 227576},
      {gpt, fp8(global(256)), "h200", one, 284200},  // fp8: 2026-11-23
      {gpt, {}, "h200", two, 441163},
      {gpt, shard("none"), "h200", two, 442564},
      {gpt, shard("full"), "h200", two, 421201},
      {qwen, shard("full", global(16)), "h200", one, 21947, &chats},
      {qwen, shard("optimizer", global(16)), "h200", one, 21964, &chats},
      {qwen, shard("full", global(32)), "h200", two, 39704, &chats},
      {qwen, shard("optimizer", global(32)), "h200", two, 40903, &chats},
      {qwen, shard("full", global(64)), "h200", four, 88500, &chats},  // 2026-11-28
      {qwen, shard("optimizer", global(64)), "h200", four, 82600, &chats},
      {quickstart, {}, "h200", one, 219011, &quickstart_rows},
      {quickstart, {}, "h200", two, 406034, &quickstart_rows},
      {laptop, {}, "h200", one, 148420},
      {laptop, {}, "h200", two, 284935},
      {trm, {}, "h200", one, 83598},
      {trm, {}, "h200", two, 152395},
      {teacher, {}, "h200", one, 429755, &teacher_rows},
      {teacher, {}, "h200", two, 808584, &teacher_rows},
      // The fractions had been set when these were measured.
      {gpt, {}, "h100", one, 214345},
      {quickstart, {}, "h100", one, 211972, &quickstart_rows},
      {laptop, {}, "h100", one, 145601},
      {trm, {}, "h100", one, 80953},
      {teacher, {}, "h100", one, 417890, &teacher_rows},
      // 2026-11-24
      {gpt, shard("optimizer", global(256)), "h100", two, 433872},
      {gpt, divided(2, 1), "h100", {1, 2, 1}, 357700},  // 2026-11-25
      {gpt, fp8(divided(2, 1)), "h100", {1, 2, 1}, 364900},
      {gpt, divided(1, 2), "h100", {1, 1, 2}, 397400},  // 2026-11-25
      // 2026-11-26
      {fast, detached(256, 8), "h200", one, 61770},
      {fast, fp8(detached(256, 8)), "h200", one, 74770},
      {fast, detached(512, 8), "h200", two, 118700},
      {fast, fp8(detached(512, 8)), "h200", two, 144000},
      {fast, {"batch.global=32", "batch.accumulation=1"}, "h200", two, 115600},
      {extreme, {"objective.detach_from=0", "batch.global=64"}, "h200", one, 57600},
      {extreme, {"objective.detach_from=0", "batch.global=128"}, "h200", two, 114500},
      {extreme, {"batch.global=32", "batch.accumulation=1"}, "h200", two, 114300},
      {gpt, divided(1, 2), "h200", {1, 1, 2}, 420000},
      {gpt, fp8(global(256)), "h100", one, 284700},
      {fast, fp8(detached(256, 8)), "h100", one, 70400},
      {gpt, shard("full", global(512)), "h100", two, 417500},
      {qwen, {"model.layers=24"}, "h100", one, 30620, &chats},
      {qwen, shard("full", {"model.layers=24", "batch.global=32"}), "h100", two, 57980, &chats},
      // 2026-11-28
      {bd3lm, whole_rows, "h100", one, 400000},
      {bd3lm, untied_rows, "h100", one, 413300},
      {bd3lm, fp8(untied_rows), "h100", one, 460300},
      {gpt, global(256), "h100", one, 217700},
      {gpt, shard("optimizer", global(1024)), "h200", four, 897600},
      {gpt, shard("full", global(1024)), "h200", four, 865300},
      {qwen, {"model.layers=24"}, "h200", one, 32300, &chats},
      {qwen, shard("full", {"model.layers=24", "batch.global=64"}), "h200", four, 125400, &chats},
      // 2026-11-25
      {fast,
       tf32({"objective.detach_from=0", "batch.per_rank=8", "batch.global=16",
             "batch.accumulation=2"}),
       "h100", one, 10749},
      {qwen, tf32({"model.layers=8"}), "h100", one, 22596, &chats},
  };
  return all;
}

deck::Deck deck_of(const char* name, const Set& set) {
  return deck::read(fmt::format("{}/{}.in", TERN_SOURCE_DIR, name), set);
}

std::string parts(const plan::StepTime& t) {
  return fmt::format(
      "products {:.1f}, attention {:.1f}, passes {:.1f}, head {:.1f}, optimizer {:.1f}, exchange "
      "{:.1f}, waiting {:.1f} ms",
      1e3 * t.products, 1e3 * t.attention, 1e3 * t.passes, 1e3 * t.head, 1e3 * t.optimizer,
      1e3 * t.exchange, 1e3 * t.waiting);
}

TEST(TrainingRate, IsNearTheMeasured) {
  for (const Measured& m : measured()) {
    const plan::PlannedDevice device(m.device);
    deck::Deck deck = deck_of(m.deck, m.set);
    deck.output.directory = "none";
    const auto mesh = comm::Mesh::for_planning(m.ranks);
    plan::Plan plan = plan::make_plan(deck, *mesh, device);
    if (m.rows) plan::set_data(plan, m.ranks, {}, *m.rows);
    ASSERT_TRUE(plan.rate);
    const auto layout = workload::make_layout(deck, m.ranks.data);
    const auto time = plan::step_time(deck, layout, m.ranks, plan.contents, device);
    const std::string what =
        fmt::format("{:<26} {} x {} x {} {}{}: {:.0f}, measured {:.0f} ({:+.1f}%); a step: {}",
                    m.deck, m.ranks.data, m.ranks.tensor, m.ranks.pipeline, m.device,
                    m.set.empty() ? "" : " " + m.set[0], plan.rate->first, m.rate,
                    100 * (plan.rate->first / m.rate - 1),
                    parts((1.0 / static_cast<double>(layout.accumulation)) * *time));
    EXPECT_NEAR(plan.rate->first / m.rate, 1, tolerance) << what;
    std::puts(what.c_str());
  }
}

/// Seconds of exchanges per step of the 350M GPT on H200s.
double exchange(const comm::Extents& ranks, const plan::Nodes& nodes, const Set& set = {}) {
  Set all{"batch.global=512", fmt::format("parallel.tensor={}", ranks.tensor),
          fmt::format("parallel.pipeline={}", ranks.pipeline)};
  all.insert(all.end(), set.begin(), set.end());
  const deck::Deck deck = deck_of(gpt, all);
  const plan::PlannedDevice device("h200", nodes);
  const auto layout = workload::make_layout(deck, ranks.data);
  return plan::step_time(deck, layout, ranks, plan::full_rows(deck), device)->exchange;
}

TEST(TrainingRateOnNodes, IsThatOfOneNodeIfItHoldsAllRanks) {
  for (const comm::Extents& ranks : {comm::Extents{8, 1, 1}, {4, 2, 1}, {2, 2, 2}, {1, 1, 8}})
    for (const plan::Nodes& nodes : {plan::Nodes{8}, {12}, {8, 100}})
      EXPECT_EQ(exchange(ranks, nodes), exchange(ranks, {}));
}

/// Each of 16 data ranks sends 15/16 of the gradients in fp32 and of the parameters in bf16, through
/// eight adapters per node.
TEST(TrainingRateOnNodes, GradientsTakeTheAdaptersOfAllRanksOfANode) {
  const Set sharded = shard("optimizer");
  const comm::Extents ranks{16, 1, 1};
  const double bytes = 6.0 * 15 / 16 * 355e6, adapter = 0.8 * 100e9 / 8;
  EXPECT_NEAR(exchange(ranks, {8, 100}, sharded), 2 * 100e-6 + bytes / (8 * adapter), 0.5e-3);
  EXPECT_NEAR(exchange(ranks, {1, 100}, sharded), 2 * 100e-6 + bytes / adapter, 4e-3);
  // Half the rate, twice the time.
  const auto at = [&](double gigabits) { return exchange(ranks, {8, gigabits}, sharded) - 2e-4; };
  EXPECT_NEAR(at(50) / at(100), 2, 1e-6);
  // A network that is faster than NVLink leaves NVLink's rate.
  EXPECT_NEAR(at(1e5), exchange(ranks, {}, sharded) - 4e-5, 1e-9);
  // Unless given, it is a DGX node's.
  EXPECT_EQ(exchange(ranks, {8}, sharded), exchange(ranks, {8, 400}, sharded));
  // Eight tensor ranks per node: each has an eighth, its own adapter, and NVLink's half rate without.
  const double part = bytes * 16 / 15 / 2 / 8;
  EXPECT_NEAR(exchange({2, 8, 1}, {8, 100}, sharded) - exchange({2, 8, 1}, {}, sharded),
              1.6e-4 + part / adapter - part / (0.60 * 450e9), 0.5e-3);
}

TEST(TrainingRateOnNodes, FallsWhereNodesDivideReplicas) {
  const plan::Nodes fours{4, 100}, eights{8, 100};
  EXPECT_EQ(exchange({1, 8, 1}, eights), exchange({1, 8, 1}, {}));
  EXPECT_GT(exchange({1, 8, 1}, fours), 2 * exchange({1, 8, 1}, eights));
  EXPECT_GT(exchange({1, 1, 8}, fours), 2 * exchange({1, 1, 8}, eights));
  // Nodes of six divide the second of two replicas of four.
  EXPECT_GT(exchange({2, 4, 1}, {6, 100}), exchange({2, 4, 1}, fours));
  double before = 0;
  for (const int per_node : {16, 8, 4, 2, 1}) {
    const double now = exchange({16, 1, 1}, {per_node});
    EXPECT_GT(now, before) << per_node;
    before = now;
  }
}

}  // namespace
}  // namespace tern
