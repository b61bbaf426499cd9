// The printed plan: consistent, in fitting units, for any number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "plan/course.hpp"
#include "plan/devices.hpp"
#include "plan/layouts.hpp"
#include "plan/sizes.hpp"
#include "plan/small_model.hpp"
#include "plan/step_contents.hpp"
#include "plan/training_rate.hpp"
#include "refusal.hpp"
#include "workload/workload.hpp"

namespace tern {
namespace {

using Words = std::vector<std::string>;

class PlanTable : public testing::Test {
 protected:
  static deck::Deck deck_of(const char* name, const std::vector<std::string>& set = {}) {
    deck::Deck deck = deck::read(fmt::format("{}/input/{}.in", TERN_SOURCE_DIR, name), set);
    deck.output.directory = "none";
    return deck;
  }
  static plan::Plan planned(const deck::Deck& deck, const comm::Extents& extents = {},
                            const char* device = "") {
    return plan::make_plan(deck, *comm::Mesh::for_planning(extents), plan::PlannedDevice(device));
  }
  static std::vector<std::string> words(const std::string& text, const std::string& beginning) {
    const auto at = text.find("\n" + beginning);
    EXPECT_NE(at, std::string::npos) << beginning << "\n" << text;
    std::istringstream line(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
    return {std::istream_iterator<std::string>(line), {}};
  }
};

TEST_F(PlanTable, SaysHowFarMaxHoursGets) {
  const deck::Deck deck = deck_of("h100_gpt350m", {"campaign.max_steps=7200"});
  const plan::Plan plan = planned(deck, {}, "h200");
  ASSERT_TRUE(plan.rate);
  const plan::Course course = plan::course(plan, plan.rate->first, 1);
  EXPECT_TRUE(course.cut);
  EXPECT_LE(course.seconds(), 3600 * 1.5);
  EXPECT_GT(course.seconds(), 3600 * 1.5 - 60);
  EXPECT_GT(course.evaluations, 0);
  EXPECT_GT(course.checkpoints, 0);
  EXPECT_NEAR(static_cast<double>(course.steps) / 7200, course.training / (course.all * 0.99),
              0.03);
  const std::string table = plan::table(plan, {});
  EXPECT_NE(table.find(fmt::format("max_hours = 1.5 ends it at step {} of 7200", course.steps)),
            std::string::npos)
      << table;
  // 1.5 h at $3/h, unless target_loss is reached.
  EXPECT_EQ(words(table, "  time"), (Words{"time", "at", "most", "90.0", "min"}));
  EXPECT_EQ(words(table, "  cost"), (Words{"cost", "at", "most", "$4.50"})) << table;
  EXPECT_NE(table.find("(target_loss = 3.0781 ends it when it is reached)"), std::string::npos);
  // The layouts agree for this number of ranks, and with more the run gets further.
  const std::string layouts = plan::layouts(deck, plan, {});
  const auto own = words(layouts, "     1 "), two = words(layouts, "     2 ");
  ASSERT_EQ(own.size(), 9u) << layouts;
  EXPECT_EQ(own[4], words(table, "  rate")[1]);
  EXPECT_EQ(own[5], std::to_string(course.steps));
  EXPECT_EQ(own[6] + own[7], "90.0min");
  EXPECT_EQ(own[8], words(table, "  cost").back());
  EXPECT_NE(layouts.find("at most: patience or target_loss"), std::string::npos) << layouts;
  EXPECT_GT(std::stoi(two[5]), 1.9 * static_cast<double>(course.steps)) << layouts;
}

TEST_F(PlanTable, WithoutALimitHasAllSteps) {
  const deck::Deck deck =
      deck_of("h100_gpt350m", {"campaign.max_steps=7200", "campaign.max_hours=0"});
  const plan::Plan plan = planned(deck, {}, "h200");
  const plan::Course course = plan::course(plan, 204700, 1);
  EXPECT_FALSE(course.cut);
  EXPECT_EQ(course.steps, 7200);
  EXPECT_EQ(course.seconds(), course.all);
  EXPECT_NEAR(course.training, plan.tokens / 204700, 1);
  // 16 evaluations of 640 rows forward, and the 15 after the first each after a checkpoint.
  EXPECT_NEAR(course.evaluations, 15 * 640 * 1024 / 204700.0 / 3, 0.1 * course.evaluations);
  EXPECT_EQ(plan::table(plan, {}).find("max_hours"), std::string::npos);
}

/// The deck as it is: its schedule ends with its hours on any number of GPUs.
TEST_F(PlanTable, ARunOverHoursHasAllOfThem) {
  const deck::Deck deck = deck_of("h100_gpt350m");
  std::int64_t before = 0;
  for (const int ranks : {1, 4}) {
    const plan::Plan plan = planned(deck, {ranks, 1, 1}, "h200");
    const plan::Course course = plan::course(plan, plan.rate->first, ranks);
    EXPECT_FALSE(course.cut);
    EXPECT_GT(course.steps, 3 * before);
    EXPECT_GT(course.steps, deck.optimizer.warmup_steps);
    EXPECT_NEAR(course.seconds(), 3600 * 1.5, 60);
    before = course.steps;
  }
}

TEST_F(PlanTable, PatienceMakesTheTimeAnUpperBound) {
  const auto table = [&](const std::vector<std::string>& set) {
    const deck::Deck deck = deck_of("h200_hdp", set);
    return plan::table(planned(deck, {}, "h200"), {});
  };
  const std::string bound = table({});
  EXPECT_EQ(words(bound, "  time")[1], "at") << bound;
  EXPECT_EQ(words(bound, "  cost")[1], "at") << bound;
  // The best evaluation may be the first, of step 100; 20 more end the run.
  EXPECT_NE(bound.find("(patience = 20 may end it from step 2100 on, after "), std::string::npos)
      << bound;
  for (const char* other : {"evaluation.patience=0", "campaign.max_steps=2100"}) {
    const std::string whole = table({other, "optimizer.warmup_steps=100"});
    EXPECT_EQ(words(whole, "  time").size(), 3u) << whole;
    EXPECT_EQ(whole.find("patience"), std::string::npos) << whole;
  }
}

TEST_F(PlanTable, SaysWhatADeviceWithoutFp8Computes) {
  const deck::Deck deck = deck_of("h100_gpt350m", {"precision.compute=fp8"});
  EXPECT_NE(planned(deck, {}, "h100").rate->second.find("typical of fp8 on H100;"),
            std::string::npos);
  const plan::Plan a100 = planned(deck, {}, "a100");
  EXPECT_NE(a100.rate->second.find("typical of bf16 on A100, which has no units for fp8;"),
            std::string::npos)
      << a100.rate->second;
  const plan::Plan bf16 = planned(deck_of("h100_gpt350m"), {}, "a100");
  EXPECT_NEAR(a100.rate->first / bf16.rate->first, 1, 0.01);
}

/// A product and a copy on the machine at hand, whose speed no test can know.
TEST_F(PlanTable, AHostThatIsTimedHasAnEstimate) {
  plan::PlannedDevice host;
  if (host.is_gpu()) return;
  deck::Deck deck = deck_of("laptop_gpt");
  EXPECT_FALSE(plan::estimated_rate(deck, {}, {}, {}, host));
  host.time_host(deck);
  ASSERT_TRUE(host.timed());
  EXPECT_FALSE(host.data_sheet());  // no peak to hold a run against
  const auto table = [&](const deck::Deck& d) {
    const plan::Plan plan = plan::make_plan(d, *comm::Mesh::for_planning({}), host);
    EXPECT_TRUE(plan.rate);
    return std::pair(plan.rate->first, plan::table(plan, {}));
  };
  const auto [rate, text] = table(deck);
  EXPECT_NE(text.find("GB/s, timed just now; within a factor of two or so)"), std::string::npos)
      << text;
  EXPECT_EQ(words(text, "  time")[0], "time");
  deck.model.layers *= 2;
  EXPECT_LT(table(deck).first, rate);
  EXPECT_FALSE(plan::peak_tflops(deck, host));
}

TEST_F(PlanTable, NamesNothingTwiceAndHasFittingUnits) {
  deck::Deck deck;
  deck.model = test::small_model(64, 2000);
  deck.data.tokenizer = "bytes";
  deck.output.directory = "none";
  const plan::Plan plan = planned(deck);
  std::istringstream table(plan::table(plan, {}));
  std::set<std::string> names;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    if (line.substr(0, 3) == "   ") continue;  // a remark
    EXPECT_TRUE(names.insert(line.substr(0, 20)).second) << line;
    EXPECT_EQ(line.find(" 0.0"), std::string::npos) << line;
  }
  EXPECT_TRUE(names.count("  parameter count   ") && names.count("  parameter memory  "));
  const std::string layouts = plan::layouts(deck, plan, {});
  EXPECT_NE(layouts.find("MiB per rank, by &parallel shard"), std::string::npos) << layouts;
  EXPECT_EQ(layouts.find(" 0.0"), std::string::npos) << layouts;
}

TEST_F(PlanTable, SizesHaveTheUnitThatFits) {
  EXPECT_EQ(plan::size_text(0), "0.0 KiB");
  EXPECT_EQ(plan::size_text(1536), "1.5 KiB");
  EXPECT_EQ(plan::size_text((1 << 20) - 1), "1024.0 KiB");
  EXPECT_EQ(plan::size_text(5 << 20), "5.0 MiB");
  EXPECT_EQ(plan::size_text(std::size_t{5} << 28), "1.250 GiB");
}

TEST_F(PlanTable, IsShortForThoseWhoHaveSeenIt) {
  const deck::Deck deck = deck_of("h100_gpt350m");
  const plan::Plan plan = planned(deck, {}, "h200");
  const std::string text = plan::summary(plan, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find(plan::size_text(plan.total_bytes)), std::string::npos);
  EXPECT_NE(text.find("tokens/s"), std::string::npos);
}

/// The batch of a preset on more ranks than it has micro-batches.
TEST_F(PlanTable, APresetIsDividedOverEightRanks) {
  const deck::Deck deck = deck_of("h200_hdp");
  const std::int64_t per_rank[] = {128, 128, 128, 64, 32};
  for (int i = 0; i < 5; ++i) {
    const plan::Plan plan = planned(deck, {1 << i, 1, 1});
    EXPECT_EQ(plan.deck.batch.per_rank, per_rank[i]);
    EXPECT_EQ(plan.deck.batch.global, 512);
    EXPECT_EQ(static_cast<std::int64_t>(plan.layout.accumulation), 512 / per_rank[i] / (1 << i));
  }
  EXPECT_NE(test::refusal([&] {
              planned(deck, {3, 1, 1});
            }).find("not a multiple"),
            std::string::npos);
  // Its table of layouts also has all of them.
  EXPECT_EQ(words(plan::layouts(deck, planned(deck, {}, "h200"), {}), "     8 ").size(), 9u);
}

/// 2,100 conversations in 292 rows: 66 updates of 32 per epoch, whatever the ranks.
TEST_F(PlanTable, StepsOfSamplesAreTheSameOnAnyRanks) {
  const data::SetSize size{292, 2100};
  for (const int ranks : {1, 2, 4, 8})
    for (const std::int64_t per_rank : {0, 1, 2, 4}) {
      const deck::Deck deck = deck::parse(
          fmt::format("&campaign epochs = 1 / &batch unit = 'samples' global = 32 per_rank = {} / "
                      "&data train = 'a.jsonl' valid = 'b.jsonl' tokenizer = 'bytes' / &model "
                      "layers = 1 hidden = 64 heads = 4 context = 64 vocabulary = 300 / &objective "
                      "kind = 'supervised' /",
                      per_rank),
          "d");
      const comm::Extents extents{ranks, 1, 1};
      plan::Plan plan = plan::make_plan(deck, *comm::Mesh::for_planning(extents),
                                        plan::PlannedDevice("h200"), size);
      plan::set_data(plan, extents, size, plan.contents);
      EXPECT_EQ(plan.steps, 66);
      EXPECT_EQ(plan.deck.batch.global, 32);
      EXPECT_EQ(plan.layout.steps.of(0), 4u);
      EXPECT_EQ(plan.layout.steps.most(), 5u);
      if (per_rank == 0) {
        EXPECT_EQ(plan.layout.global, static_cast<std::size_t>(ranks * ((5 + ranks - 1) / ranks)));
      }
      const std::string table = plan::table(plan, extents);
      EXPECT_EQ(words(table, "  samples per step").back(), "32");
      EXPECT_EQ(words(table, "  rows per step").back(), "4.4");
      EXPECT_EQ(words(table, "  steps per epoch").back(), "65.6");
      EXPECT_EQ(words(table, "  steps  ").back(), "66");
      EXPECT_EQ(plan::updates_text(plan),
                "updates: 66, 65.6 per epoch; each of 32 samples in 4.4 rows");
      EXPECT_EQ(words(plan::layouts(deck, plan, extents), "     8 ").size(), 9u);
    }
}

TEST_F(PlanTable, IsMadeForRanksThatAreNotHere) {
  deck::Deck deck = deck_of("h100x8_trm_fast");
  EXPECT_EQ(plan::make_plan(deck, *workload::planning_mesh(deck, 8)).layout.accumulation, 4u);
  deck.batch.accumulation = 4;  // of eight ranks
  const std::string refusal =
      test::refusal([&] { plan::make_plan(deck, *workload::planning_mesh(deck)); });
  EXPECT_NE(refusal.find("--ranks 8"), std::string::npos) << refusal;
  const auto mesh = workload::planning_mesh(deck, 8);
  EXPECT_EQ(mesh->world().size(), 8);
  EXPECT_EQ(plan::make_plan(deck, *mesh).layout.accumulation, 4u);
  const deck::Deck teacher = deck_of("h100x8_distill_teacher");
  EXPECT_EQ(workload::planning_mesh(teacher, 8)->data().size(), 2);
  EXPECT_THROW(workload::planning_mesh(teacher, 3), UserError);
}

TEST_F(PlanTable, SaysWhatItAssumesOfTheNetworkOfNodes) {
  const deck::Deck deck = deck_of("h100_gpt350m");
  const auto table = [&](const comm::Extents& ranks, const plan::Nodes& nodes) {
    deck::Deck there = deck;
    there.parallel.tensor = ranks.tensor;
    const auto plan = plan::make_plan(there, *comm::Mesh::for_planning(ranks),
                                      plan::PlannedDevice("h100", nodes));
    return plan::table(plan, ranks) + plan::layouts(there, plan, ranks);
  };
  const std::string two = table({16, 1, 1}, {8});
  EXPECT_EQ(words(two, "  nodes").back(), "ranks") << two;
  for (const char* said :
       {"2 of 8 ranks\n", "(400 Gbit/s per rank between them, assumed; --network",
        "on H100, assumed between nodes; no bound)", "pipeline; 8 ranks per node)", "\n    16 "})
    EXPECT_NE(two.find(said), std::string::npos) << said << two;
  EXPECT_NE(table({16, 1, 1}, {8, 200}).find("(200 Gbit/s per rank between them)"),
            std::string::npos);
  EXPECT_NE(table({2, 8, 1}, {4}).find("(8 tensor ranks not on one node"), std::string::npos);
  EXPECT_EQ(table({8, 1, 1}, {8}).find("  nodes"), std::string::npos);
}

TEST_F(PlanTable, CountsTheWholeModelOnImaginedRanks) {
  deck::Deck deck = deck_of("h100_gpt350m");
  const plan::Plan one = planned(deck, {}, "h200");
  deck.parallel.tensor = 8, deck.parallel.pipeline = 2;
  const plan::Plan many = planned(deck, {1, 8, 2}, "h200");
  EXPECT_EQ(many.parameters, one.parameters);
  EXPECT_EQ(many.flops_per_token, one.flops_per_token);
  EXPECT_NEAR(double(many.checkpoint_bytes) / double(one.checkpoint_bytes), 1, 0.01);
}

// Two H100, 2026-11-24: 0.53 GiB of what is in use were the driver's before the run. Plans made on a
// host have no workspace of the GPU's libraries, 0.3 GiB.
TEST_F(PlanTable, MemoryOfRanksIsThatInUse) {
  struct Case {
    comm::Extents ranks;
    const char* shard;
    std::int64_t per_rank, global;
    double in_use;
  };
  for (const Case& c :
       {Case{{1, 1, 1}, "optimizer", 32, 256, 31.481},
        Case{{2, 1, 1}, "optimizer", 32, 512, 31.003}, Case{{2, 1, 1}, "full", 32, 512, 29.794},
        Case{{1, 2, 1}, "optimizer", 32, 256, 20.280},
        Case{{1, 1, 2}, "optimizer", 16, 256, 20.268}}) {
    deck::Deck deck = deck_of("h100_gpt350m");
    deck.parallel.tensor = c.ranks.tensor, deck.parallel.pipeline = c.ranks.pipeline;
    deck.parallel.shard = c.shard;
    deck.batch.per_rank = c.per_rank, deck.batch.global = c.global;
    const plan::Plan plan = planned(deck, c.ranks, "h100");
    EXPECT_EQ(plan.exchange_bytes > 0, c.ranks.ranks() > 1);
    EXPECT_NEAR((double(plan.bytes()) / (1 << 30) + 0.53) / c.in_use, 1, 0.025)
        << c.shard << ' ' << c.ranks.tensor << ' ' << c.ranks.pipeline;
    if (c.ranks.ranks() > 1) {
      EXPECT_EQ(words(plan::table(plan, c.ranks), "  NCCL, about").size(), 4u);
    }
  }
}

TEST_F(PlanTable, KnowsTheA100) {
  const deck::Deck deck = deck_of("h100_gpt350m");
  double before = 1e9;
  for (const char* device : {"h200", "h100", "a100"}) {
    const plan::Plan plan = planned(deck, {}, device);
    ASSERT_TRUE(plan.rate) << device;
    EXPECT_LT(plan.rate->first, before);
    before = plan.rate->first;
  }
  EXPECT_NEAR(static_cast<double>(plan::PlannedDevice("A100").capacity().total_bytes) / (1 << 30),
              79.2, 0.1);
  EXPECT_NEAR(
      static_cast<double>(plan::PlannedDevice("A100-40GB").capacity().total_bytes) / (1 << 30),
      39.4, 0.1);
  const std::string refusal = test::refusal([] { plan::PlannedDevice("v100"); });
  EXPECT_NE(refusal.find("H200, H100, A100-40GB, A100"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace tern
