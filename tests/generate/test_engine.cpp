// The engine: a request's tokens do not depend on the other requests, the order, the prefill
// chunks, or the pages. test_texts.cpp compares them with full forwards.
#include "base/error.hpp"
#include "generate/engine_run.hpp"
#include "golden/golden.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

using generate::Answer;
using generate::EngineOptions;
using generate::FinishReason;
using generate::Request;
using generate::Stats;
using test::EngineRun;
using test::Tokens;

deck::Model connected() {
  deck::Model m = test::qwen3_like();
  m.layers = 4, m.skip_connections = m.input_shortcut = true, m.value_embeddings = 1;
  return m;
}

deck::Model model_of(int kind) {
  deck::Model m = kind == 0   ? test::tiny_model()
                  : kind == 1 ? test::gpt2_like()
                  : kind == 2 ? test::qwen3_like()
                  : kind == 3 ? test::moe_like()
                              : connected();
  m.context = 128;
  m.init_scaled_residual = false;
  return m;
}

EngineOptions sampled(std::size_t batch, std::size_t prefill_tokens) {
  EngineOptions options;
  options.batch = batch, options.prefill_tokens = prefill_tokens, options.max_model_len = 128;
  options.sampling.temperature = 0.9;
  options.sampling.top_p = 0.95;
  options.sampling.top_k = 20;
  options.sampling.seed = 4;
  return options;
}

/// 64 requests: every other one begins with the same 40 tokens; some prompts are equal.
std::vector<Request> many_requests(std::int64_t vocabulary) {
  const Tokens shared = test::random_tokens(40, vocabulary, 7);
  std::vector<Request> requests;
  for (unsigned i = 0; i < 64; ++i) {
    Tokens prompt = i % 2 ? shared : Tokens{};
    const Tokens own = test::random_tokens(1 + i * 5 % 37, vocabulary, i % 11);
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back({1000 + i, prompt, 1 + i * 7 % 40});
  }
  return requests;
}

std::map<std::uint64_t, Tokens> tokens_of(const std::map<std::uint64_t, Answer>& answers) {
  std::map<std::uint64_t, Tokens> tokens;
  for (const auto& [id, answer] : answers) tokens[id] = answer.tokens;
  return tokens;
}

class Kinds : public testing::TestWithParam<int> {};

TEST_P(Kinds, TextDependsOnTheRequestAlone) {
  const deck::Model m = model_of(GetParam());
  std::vector<Request> requests = many_requests(m.vocabulary);
  EngineRun<float> alone(m, sampled(1, 2048));
  const auto expected = tokens_of(alone.answer(requests));
  for (const Request& r : requests) EXPECT_EQ(expected.at(r.id).size(), r.max_new);
  std::mt19937 generator(5);
  for (const std::size_t batch : {7, 64})
    for (const std::size_t piece : {1, 5, 2048})
      for (const bool cached : {true, false})
        // 9 pages: 144 tokens, little more than one request; 0: as many as can be used.
        for (const std::size_t pages : {9, 40, 0}) {
          if (m.experts > 0 && (piece == 1 || pages == 40)) continue;  // slow; covered by others
          EngineOptions options = sampled(batch, piece);
          options.prefix_cache = cached, options.pages = pages;
          EngineRun<float> run(m, options);
          std::shuffle(requests.begin(), requests.end(), generator);
          EXPECT_EQ(tokens_of(run.answer(requests)), expected)
              << "batch " << batch << ", pieces of " << piece << ", cached " << cached << ", pages "
              << pages;
          const Stats stats = run.engine->stats();
          EXPECT_EQ(stats.answered, requests.size());
          EXPECT_EQ(stats.pages_in_use, 0u);
          EXPECT_LE(stats.peak_pages, stats.pages);
          if (pages == 9) {
            EXPECT_GT(stats.peak_pages, 4u);
          }
          if (!cached) {
            EXPECT_EQ(stats.reused_tokens, 0u);
          }
          if (stats.preemptions == 0) {
            EXPECT_EQ(stats.computed_tokens + stats.reused_tokens, stats.prompt_tokens);
          }
          if (pages == 0) {
            EXPECT_EQ(stats.preemptions, 0u);
          }
        }
}

INSTANTIATE_TEST_SUITE_P(Models, Kinds, testing::Values(0, 1, 2, 3, 4));

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, GreedyTextEqualsTransformers) {
  const std::string folder = std::string(TERN_SOURCE_DIR) + "/tests/golden/" + GetParam();
  const transformers::TransformersReader reader(folder);
  const test::Golden file(folder + ".h5");
  EngineOptions options;
  options.batch = 2, options.max_model_len = 69, options.prefill_tokens = 4;
  options.sampling.temperature = 0;
  EngineRun<float> run(reader.model(), options);
  for (const model::Parameter& p : run.tree.parameters())
    test::upload(reader.read(p.name, p.shape),
                 Vector<float>(run.parameters->master.data() + p.offset, p.count));
  run.parameters->refresh_compute(run.context);
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 3; ++i)
    requests.push_back({i, file.integers("prompt_" + std::to_string(i)), 60});
  for (const auto& [id, answer] : run.answer(requests))
    EXPECT_EQ(answer.tokens, file.integers("greedy_" + std::to_string(id))) << id;
}

INSTANTIATE_TEST_SUITE_P(Transformers, Golden,
                         testing::Values("llama_tied", "llama_untied", "qwen3", "gpt2"),
                         [](const auto& name) { return std::string(name.param); });

/// A prompt that all requests share is computed once, although they arrive together.
TEST(PrefixCache, ComputesACommonPromptOnce) {
  const deck::Model m = model_of(2);
  const Tokens shared = test::random_tokens(80, m.vocabulary, 7);  // five pages
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 16; ++i) {
    Tokens prompt = shared;
    prompt.push_back(static_cast<std::int32_t>(i));
    requests.push_back({i, prompt, 4});
  }
  for (const std::size_t piece : {24, 2048}) {
    EngineRun<float> run(m, sampled(8, piece));
    run.answer(requests);
    const Stats stats = run.engine->stats();
    EXPECT_EQ(stats.prompt_tokens, 16u * 81);
    EXPECT_EQ(stats.reused_tokens, 15u * 80);
    EXPECT_EQ(stats.computed_tokens, 80u + 16);
    EXPECT_EQ(stats.new_tokens, 64u);
  }
}

TEST(PrefixCache, SharedPagesTakeTheirPlaceOnce) {
  const deck::Model m = model_of(2);
  const Tokens shared = test::random_tokens(97, m.vocabulary, 7);  // six pages and a token
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 8; ++i) requests.push_back({i, shared, 10});
  EngineOptions options = sampled(8, 2048);
  options.pages = 32;
  EngineRun<float> run(m, options);
  run.answer(requests);
  const Stats stats = run.engine->stats();
  EXPECT_EQ(stats.preemptions, 0u);
  EXPECT_EQ(stats.peak_pages, 6u + 8);
}

TEST(Engine, RefusesAloneWhatCannotBeAnswered) {
  const deck::Model m = model_of(2);
  EngineOptions options = sampled(4, 16);
  options.pages = 6;  // 96 tokens
  EngineRun<float> run(m, options);
  const auto answers = run.answer({{1, {}, 5},
                                   {2, {1, 2, 3}, 5},
                                   {3, {1, 37}, 5},
                                   {4, {-1}, 5},
                                   {5, Tokens(100, 1), 29},
                                   {6, Tokens(90, 1), 7},
                                   {7, Tokens(90, 1), 6},
                                   {8, {3}, 0}});
  const auto reason = [&](std::uint64_t id) {
    EXPECT_EQ(answers.at(id).finish_reason, FinishReason::refused) << id;
    return answers.at(id).reason;
  };
  EXPECT_NE(reason(1).find("empty"), std::string::npos);
  EXPECT_NE(reason(3).find("token 37"), std::string::npos);
  EXPECT_NE(reason(4).find("token -1"), std::string::npos);
  EXPECT_NE(reason(5).find("max_model_len = 128"), std::string::npos);
  EXPECT_NE(reason(6).find("96"), std::string::npos);
  EXPECT_EQ(answers.at(2).tokens.size(), 5u);
  EXPECT_EQ(answers.at(7).tokens.size(), 6u);
  EXPECT_EQ(answers.at(8).finish_reason, FinishReason::length);
  EXPECT_TRUE(answers.at(8).tokens.empty());
  EXPECT_EQ(run.engine->stats().refused, 5u);
}

TEST(Engine, EndsAtStopTokensAndWhereTheTextEnds) {
  const deck::Model m = model_of(0);
  EngineRun<float> free(m, sampled(2, 16));
  const Request request{9, {1, 2, 3}, 40};
  const Tokens whole = free.answer({request}).at(9).tokens;
  ASSERT_EQ(whole.size(), 40u);
  EngineOptions options = sampled(2, 16);
  options.stop_tokens = {whole[20], 36};
  EngineRun<float> stops(m, options);
  const Answer stopped = stops.answer({request}).at(9);
  const auto first = std::find_if(whole.begin(), whole.end(), [&](std::int32_t token) {
    return token == whole[20] || token == 36;
  });
  EXPECT_EQ(stopped.tokens, Tokens(whole.begin(), first));
  EXPECT_EQ(stopped.finish_reason, FinishReason::stop);
  options = sampled(2, 16);
  options.stopped = [](const Tokens& tokens) { return tokens.size() == 5; };
  EngineRun<float> ends(m, options);
  const Answer ended = ends.answer({request}).at(9);
  EXPECT_EQ(ended.tokens, Tokens(whole.begin(), whole.begin() + 5));
  EXPECT_EQ(ended.finish_reason, FinishReason::stop);
}

/// A request whose logits are not finite ends; the others do not.
TEST(Engine, EndsARequestWhoseLogitsAreNotFinite) {
  const deck::Model m = model_of(2);  // untied, so that a single input row can be spoilt
  EngineRun<float> run(m, sampled(2, 16));
  const model::Parameter& embedding = run.tree.at("model/embed_tokens/weight");
  Kokkos::deep_copy(
      Vector<float>(run.parameters->master.data() + embedding.offset + 5 * embedding.shape[1], 1),
      std::nanf(""));
  run.parameters->refresh_compute(run.context);
  EngineOptions options = sampled(2, 16);
  const auto answers = run.answer({{1, {5, 1}, 1}, {2, {6, 1}, 1}});
  EXPECT_EQ(answers.at(1).finish_reason, FinishReason::not_finite);
  EXPECT_FALSE(answers.at(1).reason.empty());
  EXPECT_EQ(answers.at(2).finish_reason, FinishReason::length);
}

TEST(Engine, RefusesModelsItDoesNotServe) {
  deck::Model recursive = model_of(0);
  recursive.inner_steps = 2;
  EXPECT_THROW(EngineRun<float>(recursive, sampled(1, 16)), UserError);
  EngineOptions longer = sampled(1, 16);
  longer.max_model_len = 129;
  EXPECT_THROW(EngineRun<float>(model_of(1), longer), UserError);
}

}  // namespace
}  // namespace tern
