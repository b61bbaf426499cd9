// The engine with weights in fp8: the texts of a model whose weights were rounded beforehand; with
// inputs of linear maps, or keys and values, in fp8: texts of their own; all whatever else is in the
// batch.
#include "base/error.hpp"
#include "deck/choices.hpp"
#include "generate/engine_run.hpp"
#include "generate/rounded_weights.hpp"

namespace tern {
namespace {

using generate::EngineOptions;
using test::EngineRun;
using test::Tokens;

EngineOptions options_of(std::size_t batch, std::size_t prefill_tokens) {
  EngineOptions options;
  options.batch = batch, options.prefill_tokens = prefill_tokens, options.max_model_len = 64;
  options.sampling.temperature = 0.9;
  options.sampling.seed = 4;
  return options;
}

std::vector<generate::Request> requests_for(const deck::Model& m) {
  std::vector<generate::Request> requests{{12, {1, 2, 3}, 60}, {13, {4, 5}, 60}};
  for (unsigned i = 0; i < 12; ++i)
    requests.push_back({i, test::random_tokens(1 + i * 5 % 37, m.vocabulary, i), 4 + i * 7 % 20});
  return requests;
}

template <class T>
std::map<std::uint64_t, Tokens> texts_of(EngineRun<T>& run, const deck::Model& m) {
  std::map<std::uint64_t, Tokens> texts;
  for (const auto& [id, answer] : run.answer(requests_for(m))) texts[id] = answer.tokens;
  return texts;
}

template <class T>
class WeightsInFp8 : public testing::Test {};
using Storages = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(WeightsInFp8, Storages, );

TYPED_TEST(WeightsInFp8, WriteAsWeightsRoundedBeforehand) {
  for (deck::Model m : {test::qwen3_like(), test::gpt2_like(), test::moe_like()}) {
    m.context = 64, m.init_std = 0.3;
    EngineRun<TypeParam> beforehand(m, options_of(3, 16));
    const auto loaded = texts_of(beforehand, m);
    EngineRun<TypeParam> rounded(m, options_of(3, 16));
    const std::size_t of_layer = 4 + (m.experts > 0 ? 0 : gated(deck::activation_of(m)) ? 3 : 2);
    EXPECT_EQ(test::round_maps(rounded.tree, *rounded.parameters),
              of_layer * static_cast<std::size_t>(m.layers));
    const auto wanted = texts_of(rounded, m);
    EXPECT_NE(wanted, loaded);
    for (const std::size_t batch : {1, 3, 12})
      for (const std::size_t piece : {1, 5, 100}) {  // up to 128 rows: by one kernel on a GPU
        EngineOptions options = options_of(batch, piece);
        options.fp8_weights = true;
        EngineRun<TypeParam> coded(m, options);
        EXPECT_EQ(texts_of(coded, m), wanted) << "batch " << batch << ", pieces of " << piece;
        EXPECT_EQ(test::download(coded.parameters->compute),
                  test::download(rounded.parameters->compute));
      }
  }
}

/// A token is rounded with a scale of its own.
TYPED_TEST(WeightsInFp8, MultiplyRoundedInputsWhateverTheBatch) {
  for (deck::Model m : {test::qwen3_like(), test::gpt2_like(), test::moe_like()}) {
    m.context = 64, m.init_std = 0.3;
    EngineOptions options = options_of(3, 16);
    options.fp8_weights = true;
    EngineRun<TypeParam> of_weights(m, options);
    options.fp8_inputs = true;
    EngineRun<TypeParam> of_both(m, options);
    const auto wanted = texts_of(of_both, m);
    EXPECT_NE(wanted, texts_of(of_weights, m));
    EXPECT_EQ(test::download(of_both.parameters->compute),
              test::download(of_weights.parameters->compute));
    for (const std::size_t batch : {1, 12})
      for (const std::size_t piece : {1, 100}) {
        options = options_of(batch, piece);
        options.fp8_weights = options.fp8_inputs = true;
        EngineRun<TypeParam> again(m, options);
        EXPECT_EQ(texts_of(again, m), wanted) << "batch " << batch << ", pieces of " << piece;
      }
  }
}

TEST(WeightsInFp8, AreRoundedBeforeTheFirstPass) {
  const deck::Model m = test::qwen3_like();
  EngineOptions options = options_of(1, 16);
  options.fp8_weights = true;
  const model::ParameterTree tree(model::declare(m));
  Arena arena(EngineRun<float>::planned(m, options));
  const ops::Context context = ops::make_context(arena, true, "auto");
  const model::Parameters<float> parameters(tree, model::Purpose::inference, arena);
  generate::Engine<float> engine(m, tree, parameters, options, arena);
  engine.prepare(context);
  engine.submit({1, {1, 2}, 2});
  EXPECT_THROW(engine.step(context), InternalError);
}

template <class T>
class CacheInFp8 : public testing::Test {};
TYPED_TEST_SUITE(CacheInFp8, Storages, );

/// Batches, prefill chunks, found prefixes and recomputed tokens do not matter.
TYPED_TEST(CacheInFp8, WritesTheSameTextsHowever) {
  std::size_t preemptions = 0;
  for (deck::Model m : {test::qwen3_like(), test::gpt2_like(), test::moe_like()}) {
    m.context = 64, m.init_std = 0.3;
    EngineRun<TypeParam> plain(m, options_of(3, 16));
    EngineOptions options = options_of(3, 16);
    options.fp8_cache = true;
    EngineRun<TypeParam> coded(m, options);
    const auto wanted = texts_of(coded, m);
    EXPECT_NE(wanted, texts_of(plain, m));
    for (const std::size_t batch : {1, 12})
      for (const std::size_t piece : {1, 100})
        for (const std::size_t pages : {0, 5}) {
          options = options_of(batch, piece);
          options.fp8_cache = true, options.pages = pages, options.prefix_cache = batch > 1;
          EngineRun<TypeParam> again(m, options);
          EXPECT_EQ(texts_of(again, m), wanted)
              << "batch " << batch << ", pieces of " << piece << ", pages " << pages;
          preemptions += again.engine->stats().preemptions;
        }
  }
  EXPECT_GT(preemptions, 0u);
}

TEST(CacheInFp8Memory, APageTakesCodesAndScales) {
  const deck::Model m = test::qwen3_like();
  const auto E = static_cast<std::size_t>(m.head_dim);
  const std::size_t before = generate::Engine<bf16>::page_bytes(m);
  EXPECT_EQ(generate::Engine<bf16>::page_bytes(m, {}, true), before / (2 * E) * (E + 4));
  EngineOptions options = options_of(2, 16);
  options.pages = 8;
  const std::size_t whole = EngineRun<bf16>::planned(m, options);
  options.fp8_cache = true;
  const std::size_t coded = EngineRun<bf16>::planned(m, options);
  const std::size_t saved = 8 * (before - generate::Engine<bf16>::page_bytes(m, {}, true));
  EXPECT_LE(coded, whole - saved + 4 * static_cast<std::size_t>(m.layers) * Arena::alignment);
}

/// Codes of a byte, and a float of each row.
TEST(WeightsInFp8, TakeTheMemoryOfTheirCodes) {
  const deck::Model m = test::qwen3_like();
  EngineOptions options = options_of(1, 16);
  const std::size_t before = EngineRun<bf16>::planned(m, options);
  options.fp8_weights = true;
  const std::size_t after = EngineRun<bf16>::planned(m, options);
  std::size_t codes = 0, rows = 0, maps = 0;
  const model::ParameterTree tree(model::declare(m));
  for (const model::Parameter& p : tree.parameters())
    if (test::is_map(p))
      codes += p.shape[0] * ((p.shape[1] + 15) / 16 * 16), rows += p.shape[0], ++maps;
  EXPECT_GE(after - before, codes + 4 * rows);
  EXPECT_LE(after - before, codes + 4 * rows + maps * 2 * Arena::alignment);
}

}  // namespace
}  // namespace tern
