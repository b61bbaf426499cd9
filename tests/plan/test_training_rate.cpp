// The estimate of how fast a deck trains, beside what was measured.
#include "plan/training_rate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/devices.hpp"
#include "plan/plan.hpp"

namespace tern {
namespace {

constexpr double tolerance = 0.10;

using Overrides = std::vector<std::string>;

/// Of the rows of GSM8K by the decks of it: samples, tokens of questions, and of the rest.
constexpr plan::RowContents hdp_rows{2.69, 229, 255, 0, false}, flat_rows{2.99, 254, 284, 0, false};

struct Measured {
  const char* deck;  // below the source
  Overrides set;
  const char* device;
  comm::Extents ranks;
  double rate;  // tokens/s of all ranks
  const plan::RowContents* rows = nullptr;
};

const Overrides fp8{"precision.compute='fp8'"};
const Overrides none{};
Overrides accumulation(int count) { return {fmt::format("batch.accumulation={}", count)}; }
Overrides divided(int tensor, int pipeline) {
  return {fmt::format("parallel.tensor={}", tensor), fmt::format("parallel.pipeline={}", pipeline)};
}
Overrides student(int global, const char* shard) {
  return {fmt::format("batch.global={}", global), fmt::format("parallel.shard='{}'", shard)};
}

const Overrides bd3lm_of_shards{"data.train='x.bin'",         "data.valid='x.bin'",
                                "model.tie_embeddings=F",     "model.dropout=0",
                                "objective.condition='none'", "evaluation.problems=0"};

const std::vector<Measured>& measured() {
  static const Overrides trm_fp8{"precision.compute='fp8'", "batch.accumulation=16"};
  static const std::vector<Measured> all{
      // 2026-11-21 and 22.
      {"input/h100_gpt350m", none, "h200", {1, 1, 1}, 205600},
      {"input/h100_gpt350m", none, "h200", {2, 1, 1}, 409600},
      {"input/h100_gpt350m", none, "h200", {4, 1, 1}, 816800},
      {"input/h100_gpt350m", {"parallel.shard='full'"}, "h200", {2, 1, 1}, 387800},
      {"input/h100_gpt350m", divided(2, 1), "h200", {1, 2, 1}, 270300},
      {"input/h100_gpt350m", divided(1, 2), "h200", {1, 1, 2}, 337000},
      {"input/h100_gpt350m", fp8, "h200", {1, 1, 1}, 223200},
      {"input/h200_bd3lm", bd3lm_of_shards, "h200", {1, 1, 1}, 354500},
      {"input/h200_bd3lm", none, "h200", {1, 1, 1}, 375000, &flat_rows},
      {"input/h200_hdp", none, "h200", {1, 1, 1}, 338000, &hdp_rows},
      {"input/h100x8_trm_fast", accumulation(16), "h200", {1, 1, 1}, 55200},
      {"input/h100x8_trm_fast", accumulation(8), "h200", {2, 1, 1}, 109200},
      {"input/h100x8_trm_fast", accumulation(4), "h200", {4, 1, 1}, 218700},
      {"input/h100x8_trm_fast", accumulation(16), "h100", {1, 1, 1}, 52500},
      {"input/h100x8_trm_fast", trm_fp8, "h200", {1, 1, 1}, 56800},
      {"input/h100x8_trm_extreme", accumulation(16), "h200", {1, 1, 1}, 53400},
      {"bench/qwen3_4b_supervised", student(16, "full"), "h200", {1, 1, 1}, 21950},
      {"bench/qwen3_4b_supervised", student(32, "full"), "h200", {2, 1, 1}, 39760},
      {"bench/qwen3_4b_supervised", student(64, "full"), "h200", {4, 1, 1}, 81300},
      {"bench/qwen3_4b_supervised", student(64, "optimizer"), "h200", {4, 1, 1}, 82600},
  };
  return all;
}

deck::Deck deck_of(const char* name, const Overrides& set) {
  return deck::read(fmt::format("{}/{}.in", TERN_SOURCE_DIR, name), set);
}

/// Plans are for this device again at the end.
struct Imagined {
  explicit Imagined(const char* device) { plan::imagine_device(device); }
  ~Imagined() { plan::imagine_device(""); }
};

std::string parts(const plan::StepTime& t) {
  return fmt::format(
      "products {:.1f}, attention {:.1f}, passes {:.1f}, head {:.1f}, optimizer {:.1f}, exchange "
      "{:.1f}, waiting {:.1f} ms",
      1e3 * t.products, 1e3 * t.attention, 1e3 * t.passes, 1e3 * t.head, 1e3 * t.optimizer,
      1e3 * t.exchange, 1e3 * t.waiting);
}

TEST(TrainingRate, IsNearTheMeasured) {
  for (const Measured& m : measured()) {
    const Imagined device(m.device);
    deck::Deck deck = deck_of(m.deck, m.set);
    deck.output.directory = "none";
    const auto mesh = comm::Mesh::imagined(m.ranks);
    plan::Plan plan = plan::make_plan(deck, *mesh);
    if (m.rows) plan::set_data(plan, deck, m.ranks, *m.rows);
    ASSERT_TRUE(plan.rate);
    const auto layout = plan::make_layout(deck, m.ranks.data);
    const auto time = plan::step_time(deck, layout, m.ranks, plan.contents);
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

}  // namespace
}  // namespace tern
