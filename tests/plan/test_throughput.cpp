// The estimate of how fast a file is answered, compared with measurements on H200s with Qwen3's
// shapes, random weights and bf16, 2026-11-22 (docs/measurements/inference.md says how to repeat them).
#include "plan/throughput.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "deck/deck.hpp"
#include "plan/layouts.hpp"

namespace tern {
namespace {

constexpr plan::DeviceRates h200{989.4e12, 4.8e12};
constexpr double tolerance = 0.15;

deck::Deck deck_of(const char* name) {
  return deck::read(fmt::format("{}/input/{}.in", TERN_SOURCE_DIR, name), {});
}
deck::Deck teacher() { return deck_of("h100x8_distill_teacher"); }  // Qwen3-30B-A3B
deck::Deck student() { return deck_of("h100x8_distill_student"); }  // Qwen3-4B

void expect_near(double estimate, double measured, const char* what) {
  EXPECT_NEAR(estimate / measured, 1, tolerance)
      << what << ": " << estimate << ", not " << measured;
}

/// As bench_engine: 64 requests at once, prompts of 512 tokens, prefill chunks of 2048.
plan::AnswerTime streams_of_4b(double new_tokens) {
  generate::EngineOptions options;
  options.batch = 64;
  options.prefill_tokens = 2048;
  return plan::answer_time(student(), options, {64, 512, 0, new_tokens}, {}, h200);
}

TEST(Throughput, OfPromptsIsNearTheMeasured) {
  expect_near(512 / streams_of_4b(1).prompt, 76600, "4B, prompt tokens/s");
}

TEST(Throughput, OfDecodingIsNearTheMeasured) {
  const plan::AnswerTime first = streams_of_4b(1), all = streams_of_4b(64);
  EXPECT_EQ(first.prompt, all.prompt);
  expect_near(63 / (all.total() - first.total()), 11560, "4B, new tokens/s");
}

struct Case {
  int tensor, data;
  std::size_t batch;
  bool prefix_cache;
  double measured;  // requests/s
};
/// On one, two and four GPUs. Those on four were measured after the estimate was made.
constexpr Case cases[] = {
    {1, 1, 256, true, 363.2},  {1, 1, 256, false, 50.7},  {2, 1, 256, true, 388.9},
    {2, 1, 256, false, 72.6},  {1, 2, 256, true, 686.9},  {4, 1, 256, true, 520.8},
    {4, 1, 256, false, 108.6}, {4, 1, 1024, true, 701.3}, {1, 4, 256, true, 1272.9},
    {1, 4, 256, false, 202.3}, {2, 2, 256, true, 778.9}};

TEST(Throughput, OfAFileIsNearTheMeasured) {
  for (const Case& c : cases) {
    const deck::Deck deck = teacher();
    plan::Throughput throughput;
    throughput.requests = {2100, 939, 874, 16};
    throughput.rates = h200;
    generate::EngineOptions options = workload::engine_options(deck);
    options.batch = c.batch, options.prefix_cache = c.prefix_cache;
    const auto rate = throughput.rate(deck, options, {c.data, c.tensor, 1});
    ASSERT_TRUE(rate);
    expect_near(*rate, c.measured,
                fmt::format("30B-A3B, tensor {}, data {}, batch {}, prefix cache {}", c.tensor,
                            c.data, c.batch, c.prefix_cache)
                    .c_str());
  }
}

/// Few rows read one byte per weight of a block, many rows two, unless inputs are in fp8, too.
TEST(Throughput, CountsTheBytesOfWeightsInFp8) {
  plan::DeviceRates rates = h200;
  generate::EngineOptions options;
  options.batch = 16, options.prefill_tokens = 2048;
  const plan::Requests requests{16, 64, 0, 64};
  const auto time = [&] { return plan::answer_time(student(), options, requests, {}, rates); };
  const plan::AnswerTime whole = time();
  options.fp8_weights = true;
  EXPECT_EQ(time().new_tokens, whole.new_tokens);  // a GPU that does not read them
  rates.flops_fp8 = 2 * rates.flops;
  EXPECT_EQ(time().prompt, whole.prompt);
  EXPECT_LT(time().new_tokens, 0.65 * whole.new_tokens);
  EXPECT_GT(time().new_tokens, 0.5 * whole.new_tokens);
  options.batch = 129;
  const auto of_many = [&] {
    return plan::answer_time(student(), options, {129, 64, 0, 64}, {}, rates);
  };
  const plan::AnswerTime many = of_many();
  options.fp8_inputs = true;
  EXPECT_LT(of_many().prompt, many.prompt);
  EXPECT_LT(of_many().new_tokens, many.new_tokens);
  options.fp8_inputs = options.fp8_weights = false;
  EXPECT_EQ(of_many().prompt, many.prompt);
  EXPECT_EQ(of_many().new_tokens, many.new_tokens);
}

/// Quantities without measurements have the right trend.
TEST(Throughput, FollowsWhatItDependsOn) {
  const deck::Deck deck = teacher();
  generate::EngineOptions options = workload::engine_options(deck);
  options.batch = 256;
  const plan::Requests requests{2100, 939, 874, 16};
  const double whole = plan::answer_time(deck, options, requests, {}, h200).new_tokens;
  options.pages = 200;  // the common 54, and 36 requests of 91 tokens in the rest
  EXPECT_GT(plan::answer_time(deck, options, requests, {}, h200).new_tokens, 2 * whole);
  options.pages = 0;
  options.batch = 16;  // of 128 experts, 1 - (120 / 128)^16 = 64% are touched
  const double few = plan::answer_time(deck, options, requests, {}, h200).new_tokens;
  EXPECT_GT(few, 6 * whole);
  EXPECT_LT(few, 14 * whole);
  double before = 1;
  for (const int tensor : {1, 2, 4, 8}) {
    const plan::AnswerTime time = plan::answer_time(deck, options, requests, {1, tensor, 1}, h200);
    EXPECT_LT(time.prompt, before);
    EXPECT_EQ(time.exchange > 0, tensor > 1);
    before = time.prompt;
  }
  // Two stages read half of the weights each, at the same time.
  options.batch = 32;
  const double divided = plan::answer_time(deck, options, requests, {1, 1, 2}, h200).new_tokens;
  EXPECT_NEAR(divided, few / 2, 0.02 * few);
  options.batch = 16;
  EXPECT_GT(plan::answer_time(deck, options, requests, {1, 1, 2}, h200).new_tokens, divided);
  deck::Deck fp32 = deck;
  fp32.precision.compute = "fp32";
  EXPECT_GT(plan::answer_time(fp32, options, requests, {}, h200).new_tokens, 1.9 * few);
}

plan::Throughput of_teacher() {
  plan::Throughput throughput;
  throughput.requests = {2100, 939, 874, 16};
  throughput.own = {2, 4, 1};
  throughput.own_options = workload::engine_options(teacher());
  throughput.own_options.pages = 65536;
  return throughput;
}

TEST(Throughput, PrefersWhatWasMeasured) {
  const deck::Deck deck = teacher();
  plan::Throughput throughput = of_teacher();
  const auto rate = [&](const comm::Extents& there) {
    return throughput.rate(deck, throughput.own_options, there);
  };
  EXPECT_FALSE(rate({2, 4, 1}));
  EXPECT_NE(plan::table(throughput, deck).find("no estimate for this device"), std::string::npos);
  throughput.measured = 10;  // each of eight
  EXPECT_EQ(rate({2, 4, 1}), 80);
  EXPECT_EQ(rate({8, 4, 1}), 320);
  EXPECT_FALSE(rate({2, 8, 1}));
  throughput.rates = h200;
  EXPECT_EQ(rate({2, 4, 1}), 80);
  const double measured = *rate({2, 8, 1});
  EXPECT_NE(plan::table(throughput, deck).find("the last run in"), std::string::npos);
  throughput.measured.reset();
  EXPECT_NEAR(measured / 80, *rate({2, 8, 1}) / *rate({2, 4, 1}), 1e-12);
  EXPECT_NE(plan::table(throughput, deck).find("estimated"), std::string::npos);
}

/// The numbers of the line of `text` that starts with `beginning`, after it.
std::vector<std::string> cells(const std::string& text, const std::string& beginning) {
  const auto at = text.find("\n" + beginning);
  EXPECT_NE(at, std::string::npos) << beginning << "\n" << text;
  std::istringstream line(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
  return {std::istream_iterator<std::string>(line), {}};
}

TEST(Throughput, IsATableOfLayouts) {
  const deck::Deck deck = teacher();
  plan::Throughput throughput = of_teacher();
  const generate::EngineOptions options = workload::engine_options(deck);
  const auto usable = static_cast<std::size_t>(120) << 30;
  EXPECT_EQ(plan::layouts(deck, options, usable, throughput).find("requests/s"), std::string::npos);
  throughput.rates = h200;
  const std::string text = plan::layouts(deck, options, usable, throughput);
  const auto by_tensor = cells(text, "       4 "), by_data = cells(text, "       2        8 ");
  ASSERT_EQ(by_tensor.size(), 9u) << text;  // tensor, memory, cache, its tokens, and:
  ASSERT_EQ(by_data.size(), 7u) << text;    // rate, time and its unit, cost, dollars per 1,000
  const double rate = std::stod(by_tensor[4]);
  EXPECT_EQ(by_data[2], by_tensor[4]) << text;  // the deck's own
  EXPECT_NEAR(std::stod(by_tensor[5]), 2100 / rate, 0.06);
  EXPECT_EQ(by_tensor[6], "s");
  EXPECT_NEAR(std::stod(by_data[6].substr(1)), 1000 / rate / 3600 * 8 * 3, 1e-4) << text;
  const double twice = std::stod(cells(text, "       4       16 ")[2]);
  EXPECT_GT(twice, 1.8 * rate);
  EXPECT_LT(twice, 2.01 * rate);
}

}  // namespace
}  // namespace tern
