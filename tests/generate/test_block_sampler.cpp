// Block sampling: equal to uncached sampling token for token, whatever the batch; order and number
// of passes; ends, filling, given levels; errors.
#include "base/error.hpp"
#include "generate/block_reference.hpp"

namespace tern {
namespace {

using generate::BlockSampling;
using generate::LevelRule;
using test::Tokens;
using Samples = std::vector<std::vector<Tokens>>;  // [prompt][level]

constexpr std::int32_t mask = 36, end = 5;  // of 37 tokens; 0..5 are drawn
constexpr std::uint64_t seed = 3;

deck::Model model_of(std::int64_t levels) {
  deck::Model m = test::tiny_model();
  m.levels = levels;
  m.init_scaled_residual = false;
  return m;
}

struct Sampler {
  Sampler(const deck::Model& m, std::size_t batch, std::size_t max_tokens, std::size_t block)
      : tree(model::declare(m)), arena(planned(m, batch, max_tokens, block)) {
    request(m, batch, max_tokens, block, arena);
    sampler->prepare(context);
    parameters->initialize(context, tree, seed);
  }

  static std::size_t planned(const deck::Model& m, std::size_t batch, std::size_t max_tokens,
                             std::size_t block) {
    Arena measure;
    Sampler plan{model::ParameterTree(model::declare(m))};
    plan.request(m, batch, max_tokens, block, measure);
    return measure.bytes();
  }

  Samples run(const std::vector<Tokens>& prompts, const std::vector<LevelRule>& rules,
              const BlockSampling& options, const Samples& given = {}) {
    return sampler->sample(context, prompts, rules, given, options);
  }

  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  std::optional<model::Parameters<float>> parameters;
  std::optional<generate::BlockSampler<float>> sampler;

 private:
  explicit Sampler(model::ParameterTree t) : tree(std::move(t)) {}
  void request(const deck::Model& m, std::size_t batch, std::size_t max_tokens, std::size_t block,
               Arena& from) {
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, model::Purpose::inference, from);
    sampler.emplace(m, tree, *parameters, batch, max_tokens, block, from);
  }
};

struct Case {
  const char* name;
  std::vector<LevelRule> rules;
  BlockSampling::Method method;
  std::size_t steps;
  double temperature, top_p;
};

constexpr auto ddpm = BlockSampling::Method::ddpm;
constexpr auto first_hitting = BlockSampling::Method::first_hitting;

BlockSampling options_of(const Case& c) {
  BlockSampling options;
  options.sampling.temperature = c.temperature;
  options.sampling.top_p = c.top_p;
  options.sampling.seed = 11;
  options.method = c.method;
  options.steps = c.steps;
  options.mask = mask;
  options.end = end;
  options.vocabulary = 6;
  return options;
}

BlockSampling plain_options() { return options_of({"", {}, first_hitting, 0, 1, 1}); }

std::vector<LevelRule> flat(std::size_t tokens, std::size_t block, std::size_t ends) {
  return {{tokens, block, -1, ends}};
}

/// A plan of one block, and an execution whose last block is short.
std::vector<LevelRule> hierarchy(std::size_t plan_block = 0) {
  return {{8, plan_block, 1, 1}, {13, 4, 2, 2}};
}

const std::vector<Tokens> prompts{{7, 8, 9}, {}, {1, 2, 3, 4, 30, 6, 7}, {9}, {10, 11, 12, 13, 14}};

std::size_t longest_of(const std::vector<LevelRule>& rules) {
  std::size_t length = 0;
  for (const LevelRule& rule : rules) length += rule.tokens;
  return length;
}

std::size_t largest_block(const std::vector<LevelRule>& rules) {
  std::size_t block = 0;
  for (const LevelRule& rule : rules) block = std::max(block, rule.block_tokens());
  return block;
}

Samples uncached(const std::vector<LevelRule>& rules, const BlockSampling& options,
                 const Samples& given = {}) {
  test::BlockReference reference(model_of(rules[0].level < 0 ? 0 : 3), seed,
                                 8 + 2 * longest_of(rules));
  Samples results;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    results.push_back(reference.sample(i, prompts[i], rules,
                                       given.empty() ? std::vector<Tokens>{} : given[i], options));
  return results;
}

Sampler sampler_for(const std::vector<LevelRule>& rules, std::size_t batch) {
  return Sampler(model_of(rules[0].level < 0 ? 0 : 3), batch, 7 + longest_of(rules),
                 largest_block(rules));
}

class Cases : public testing::TestWithParam<Case> {};

TEST_P(Cases, CachedEqualsUncachedForAnyBatch) {
  const Case& c = GetParam();
  const BlockSampling options = options_of(c);
  const Samples expected = uncached(c.rules, options);
  for (const std::size_t batch : {1, 3, 5})
    EXPECT_EQ(sampler_for(c.rules, batch).run(prompts, c.rules, options), expected)
        << "batch " << batch;
  for (const auto& levels : expected)
    for (const Tokens& level : levels)
      for (const std::int32_t token : level) EXPECT_LT(token, 6);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Cases,
    testing::Values(Case{"flat_1", flat(6, 1, 2), first_hitting, 0, 1, 1},
                    Case{"flat_1_greedy", flat(6, 1, 1), ddpm, 3, 0, 1},
                    Case{"flat_4", flat(16, 4, 2), first_hitting, 0, 1, 1},
                    Case{"flat_4_short_last", flat(11, 4, 0), ddpm, 0, 1, 1},
                    Case{"flat_4_greedy", flat(11, 4, 0), first_hitting, 0, 0, 1},
                    Case{"flat_4_nucleus", flat(11, 4, 2), ddpm, 9, 0.9, 0.8},
                    Case{"flat_whole", flat(14, 0, 0), ddpm, 5, 1, 1},
                    Case{"flat_whole_nucleus", flat(14, 0, 3), first_hitting, 0, 1.2, 0.7},
                    // More tokens drawn per pass than rows of logits are held.
                    Case{"flat_long_one_step", flat(290, 0, 0), ddpm, 1, 1, 0.95},
                    Case{"hdp", hierarchy(), first_hitting, 0, 1, 1},
                    Case{"hdp_ddpm", hierarchy(), ddpm, 3, 1, 1},
                    Case{"hdp_greedy", hierarchy(), ddpm, 0, 0, 1},
                    Case{"hdp_plan_in_blocks", hierarchy(3), first_hitting, 0, 1, 0.9},
                    Case{"hdp_plan_of_1", hierarchy(1), ddpm, 2, 1, 1}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(BlockSampler, SequencesThatFinishAtDifferentBlocksDoNotDisturbEachOther) {
  std::vector<LevelRule> rules = hierarchy(2);
  rules[1].ends = 1;
  Sampler one = sampler_for(rules, 1), five = sampler_for(rules, 5);
  std::size_t uneven[2] = {0, 0};
  for (std::uint64_t s = 0; s < 20; ++s) {
    BlockSampling options = plain_options();
    options.sampling.seed = s;
    const Samples samples = five.run(prompts, rules, options);
    EXPECT_EQ(one.run(prompts, rules, options), samples);
    for (std::size_t l = 0; l < 2; ++l) {
      // A sequence ends before one that comes after it: its slot is freed.
      bool before = false;
      for (std::size_t i = 1; i < samples.size(); ++i)
        before = before || samples[i - 1][l].size() < samples[i][l].size();
      uneven[l] += before;
    }
  }
  EXPECT_GT(uneven[0], 10u);
  EXPECT_GT(uneven[1], 10u);
}

TEST(BlockSampler, ALevelEndsAtItsLastEndTokenAndIsFilledToWholeBlocks) {
  const auto rules = flat(18, 4, 2);
  std::size_t ended = 0;
  for (std::uint64_t s = 0; s < 6; ++s) {
    BlockSampling options = plain_options();
    options.sampling.seed = s;
    for (const auto& levels : sampler_for(rules, 5).run(prompts, rules, options)) {
      const Tokens& level = levels[0];
      EXPECT_TRUE(level.size() % 4 == 0 || level.size() == 18);
      const auto first = std::find(level.begin(), level.end(), end);
      const auto second = first == level.end() ? first : std::find(first + 1, level.end(), end);
      if (second == level.end()) {
        EXPECT_EQ(level.size(), 18u);
        continue;
      }
      ++ended;
      EXPECT_EQ(std::count(second, level.end(), end), level.end() - second);
      EXPECT_LE(level.end() - second, 4);
    }
  }
  EXPECT_GT(ended, 10u);
}

TEST(BlockSampler, GivenLevelsEqualUncached) {
  const auto rules = hierarchy(3);
  // Complete with its end token; cut and filled after it; empty; to be continued; of maximum
  // length.
  const Samples given{{{1, 2, 3, 5}, {}},
                      {{1, 5, 2, 2, 2, 2, 2}, {}},
                      {{}, {4, 4, 4, 4, 4, 3}},
                      {{1, 2}, {}},
                      {{1, 2, 3, 4, 1, 2, 3, 4}, {5, 1}}};
  const Samples expected = uncached(rules, plain_options(), given);
  EXPECT_EQ(expected[0][0], (Tokens{1, 2, 3, 5, 5, 5}));
  EXPECT_EQ(expected[1][0], (Tokens{1, 5, 5}));
  EXPECT_EQ(expected[4][0], given[4][0]);
  for (const std::size_t batch : {1, 3, 5})
    EXPECT_EQ(sampler_for(rules, batch).run(prompts, rules, plain_options(), given), expected)
        << "batch " << batch;
}

TEST(BlockSampler, AGivenPlanIsLikeOneSampled) {
  const auto rules = hierarchy();
  Sampler sampler = sampler_for(rules, 3);
  const Samples samples = sampler.run(prompts, rules, plain_options());
  Samples given, other;
  for (const auto& levels : samples) {
    Tokens plan = levels[0];
    const auto first_end = std::find(plan.begin(), plan.end(), end);
    if (first_end != plan.end()) plan.erase(first_end + 1, plan.end());
    given.push_back({plan, {}});
    other.push_back({{1, end}, {}});
  }
  EXPECT_EQ(sampler.run(prompts, rules, plain_options(), given), samples);
  const Samples changed = sampler.run(prompts, rules, plain_options(), other);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) differ += changed[i][1] != samples[i][1];
  EXPECT_GT(differ, 0u);  // the execution sees the plan
}

TEST(BlockSampler, RandomNumbersGoWithTheNumberOfThePrompt) {
  const auto rules = flat(12, 4, 0);
  const std::vector<Tokens> same(4, Tokens{1, 2});
  Sampler sampler = sampler_for(rules, 2);
  const Samples all = sampler.run(same, rules, plain_options());
  EXPECT_NE(all[0], all[1]);
  BlockSampling options = plain_options();
  options.first = 2;
  EXPECT_EQ(sampler.run({same[2], same[3]}, rules, options), Samples(all.begin() + 2, all.end()));
  options = plain_options();
  options.sampling.seed = 12;
  EXPECT_NE(sampler.run(same, rules, options), all);
}

TEST(BlockSampler, MakesNoPassesThatUnmaskNothing) {
  const auto passes = [&](const BlockSampling& options, std::size_t block) {
    const auto rules = flat(16, block, 0);
    Sampler sampler = sampler_for(rules, 1);
    sampler.run({Tokens{1, 2}}, rules, options);
    return sampler.sampler->work().passes;
  };
  BlockSampling options = plain_options();
  EXPECT_EQ(passes(options, 4), 16u);  // one token each; clean tokens need no pass of their own
  EXPECT_EQ(passes(options, 1), 16u);
  options.method = ddpm;
  options.steps = 1;
  EXPECT_EQ(passes(options, 4), 4u);
  options.steps = 1000;
  EXPECT_LE(passes(options, 4), 16u);
  EXPECT_GE(passes(options, 4), 14u);
}

TEST(BlockSampler, LongPromptsAreReadInSeveralPasses) {
  const auto rules = flat(8, 2, 0);
  const std::vector<Tokens> longer{Tokens(30, 1), Tokens(25, 2), Tokens(3, 3)};
  const auto run = [&](std::size_t batch) {
    deck::Model m = model_of(0);
    return Sampler(m, batch, 38, 2).run(longer, rules, plain_options());
  };
  EXPECT_EQ(run(1), run(3));
}

TEST(Unmasking, FirstHittingShufflesAndUnmasksOneAtATime) {
  const BlockSampling options = plain_options();
  std::map<Tokens, int> counts;
  constexpr int draws = 2400;
  for (std::uint32_t i = 0; i < draws; ++i) {
    const auto passes = generate::detail::unmasking(options, {mask, 1, mask, mask, mask}, i * 5);
    Tokens order;
    for (const auto& places : passes) {
      ASSERT_EQ(places.size(), 1u);
      order.push_back(static_cast<std::int32_t>(places[0]));
    }
    ++counts[order];
  }
  EXPECT_EQ(counts.size(), 24u);  // all orders of places 0, 2, 3, 4
  for (const auto& [order, count] : counts) {
    Tokens sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (Tokens{0, 2, 3, 4}));
    EXPECT_NEAR(count, draws / 24, 5 * std::sqrt(draws / 24.0));
  }
}

TEST(Unmasking, DdpmUnmasksEachTokenInAnyStepWithEqualProbability) {
  BlockSampling options = plain_options();
  options.method = ddpm;
  options.steps = 2;
  constexpr std::uint32_t draws = 2000;
  double first = 0, together = 0;
  for (std::uint32_t i = 0; i < draws; ++i) {
    const auto passes = generate::detail::unmasking(options, Tokens(2, mask), 2 * i);
    ASSERT_LE(passes.size(), 2u);
    if (passes.size() == 1)
      ++together;
    else
      first += passes[0][0] == 0;
  }
  EXPECT_NEAR(together, draws / 2.0, 5 * std::sqrt(draws / 4.0));
  EXPECT_NEAR(first, draws / 4.0, 5 * std::sqrt(draws * 3 / 16.0));
  options.steps = 0;  // as many as tokens
  std::size_t passes = 0;
  for (std::uint32_t i = 0; i < 200; ++i)
    passes += generate::detail::unmasking(options, Tokens(8, mask), 8 * i).size();
  // 8 (1 - (7/8)^8) of the steps unmask something.
  EXPECT_NEAR(static_cast<double>(passes) / 200, 8 * (1 - std::pow(7.0 / 8, 8)), 0.3);
}

TEST(Unmasking, TokensHaveNumbersOfTheirOwn) {
  EXPECT_EQ(generate::detail::random_id(0, 3, 10), 3u);
  EXPECT_EQ(generate::detail::random_id(7, 9, 10), 79u);
  EXPECT_THROW(generate::detail::random_id(0, 10, 10), InternalError);
  EXPECT_THROW(generate::detail::random_id(1u << 30, 0, 10), InternalError);
}

TEST(BlockSampler, RefusesWhatItCannotSample) {
  const auto rules = flat(8, 4, 1);
  Sampler sampler(model_of(0), 2, 12, 4);
  EXPECT_NO_THROW(sampler.run({Tokens(4, 1)}, rules, plain_options()));
  EXPECT_THROW(sampler.run({Tokens{1}, Tokens(5, 1)}, rules, plain_options()), UserError);
  EXPECT_THROW(sampler.run({Tokens{37}}, rules, plain_options()), UserError);
  EXPECT_THROW(sampler.run({Tokens{-1}}, rules, plain_options()), UserError);
  EXPECT_THROW(sampler.run({Tokens{}}, rules, plain_options(), {{Tokens(9, 1)}}), UserError);
  EXPECT_THROW(sampler.run({Tokens{}}, rules, plain_options(), {{Tokens{37}}}), UserError);
  EXPECT_THROW(sampler.run({Tokens{}}, flat(8, 5, 1), plain_options()), InternalError);
  EXPECT_THROW(sampler.run({Tokens{}}, {{8, 4, 1, 1}}, plain_options()), InternalError);
  BlockSampling drawable_mask = plain_options();
  drawable_mask.vocabulary = 37;
  EXPECT_THROW(sampler.run({Tokens{}}, rules, drawable_mask), InternalError);
  EXPECT_THROW(Sampler(test::gpt2_like(), 1, 12, 4), InternalError);
  Kokkos::deep_copy(sampler.parameters->master, std::nanf(""));
  sampler.parameters->refresh_compute(sampler.context);
  EXPECT_THROW(sampler.run({Tokens{1}}, rules, plain_options()), UserError);
}

}  // namespace
}  // namespace tern
