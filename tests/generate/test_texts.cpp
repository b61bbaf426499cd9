// Texts from prompts: greedy output equals that of Transformers' generate(), cached decoding equals
// full forwards, and a text does not depend on the other texts of its batch.
#include "generate/texts.hpp"

#include "base/error.hpp"
#include "golden/golden_model.hpp"
#include "model/harness.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::size_t prompt_rows = 256;  // per pass

const std::string folder = std::string(TERN_SOURCE_DIR) + "/tests/golden/";

struct Wanted : generate::SamplingOptions {
  std::size_t max_new = 128;
};

template <class T>
struct Generation {
  Generation(const deck::Model& m, std::size_t batch, std::size_t max_tokens, std::size_t steps = 1)
      : tree(model::declare(m)), arena(planned(m, batch, max_tokens, steps)) {
    request(m, batch, max_tokens, steps, arena);
    engine->prepare(context);
  }

  static std::size_t planned(const deck::Model& m, std::size_t batch, std::size_t max_tokens,
                             std::size_t steps) {
    Arena measure;
    Generation plan{model::ParameterTree(model::declare(m))};
    plan.request(m, batch, max_tokens, steps, measure);
    return measure.bytes();
  }

  std::vector<Tokens> run(const std::vector<Tokens>& prompts, const Wanted& wanted) {
    engine->set_sampling(wanted);
    return generate::write_texts(*engine, context, prompts, wanted.max_new);
  }

  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  std::optional<model::Parameters<T>> parameters;
  std::optional<generate::Engine<T>> engine;

 private:
  explicit Generation(model::ParameterTree t) : tree(std::move(t)) {}
  void request(const deck::Model& m, std::size_t batch, std::size_t max_tokens, std::size_t steps,
               Arena& from) {
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, model::Purpose::inference, from);
    engine.emplace(m, tree, *parameters, generate::text_options(batch, max_tokens, steps), from);
  }
};

template <class T>
void load(const transformers::TransformersReader& reader, Generation<T>& to) {
  for (const model::Parameter& p : to.tree.parameters())
    test::upload(reader.read(p.name, p.shape),
                 Vector<Accumulate<T>>(to.parameters->master.data() + p.offset, p.count));
  to.parameters->refresh_compute(to.context);
}

Wanted greedy(std::size_t max_new) {
  Wanted options;
  options.sampling.temperature = 0;
  options.max_new = max_new;
  return options;
}

class Golden : public testing::TestWithParam<const char*> {};

/// Three prompts of lengths 5, 9 and 5, separately and together.
TEST_P(Golden, GreedyOutputEqualsTransformers) {
  const transformers::TransformersReader reader(folder + GetParam());
  const test::Golden file(folder + GetParam() + ".h5");
  std::vector<Tokens> prompts, expected;
  for (int i = 0; i < 3; ++i) {
    prompts.push_back(file.integers("prompt_" + std::to_string(i)));
    expected.push_back(file.integers("greedy_" + std::to_string(i)));
    ASSERT_EQ(expected.back().size(), 60u);
  }
  for (const std::size_t batch : {1, 2, 3, 4}) {
    Generation<float> generation(reader.model(), batch, 9 + 60);
    load(reader, generation);
    EXPECT_EQ(generation.run(prompts, greedy(60)), expected) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, Golden,
                         testing::Values("llama_tied", "llama_untied", "qwen3", "gpt2"),
                         [](const auto& name) { return std::string(name.param); });

/// The same for an MoE model, whose parameters are in the golden file.
TEST(GoldenExperts, GreedyOutputEqualsTransformers) {
  for (const char* name : {"qwen3_moe", "qwen3_moe_plain"}) {
    const test::Golden file(folder + name + ".h5");
    std::vector<Tokens> prompts, expected;
    for (int i = 0; i < 3; ++i) {
      prompts.push_back(file.integers("prompt_" + std::to_string(i)));
      expected.push_back(file.integers("greedy_" + std::to_string(i)));
    }
    for (const std::size_t batch : {1, 3}) {
      Generation<float> generation(test::golden_model(file), batch, 9 + 60);
      for (const model::Parameter& p : generation.tree.parameters())
        test::upload(file.numbers("parameters/" + p.name),
                     Vector<float>(generation.parameters->master.data() + p.offset, p.count));
      EXPECT_EQ(generation.run(prompts, greedy(60)), expected) << name << ", batch " << batch;
    }
  }
}

/// Greedy tokens from the full forward of a training transformer after each prefix.
Tokens greedy_by_full_forward(const deck::Model& description, std::uint64_t seed, Tokens text,
                              std::size_t count) {
  Tokens result;
  const auto V = static_cast<std::size_t>(description.vocabulary);
  for (std::size_t i = 0; i < count; ++i) {
    model::TransformerOptions options{1, text.size()};
    options.training = false;
    test::Harness<double> model(description, options);
    model.parameters->initialize(model.context, model.tree, seed);
    model.set_batch(text, text);
    const std::vector<double> logits = model.logits();
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(V);
    result.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
    text.push_back(result.back());
  }
  return result;
}

deck::Model connected() {
  deck::Model m = test::qwen3_like();
  m.layers = 5, m.skip_connections = m.input_shortcut = true, m.value_embeddings = 2;
  return m;
}

class Kinds : public testing::TestWithParam<int> {
 protected:
  static deck::Model model() {
    deck::Model m = GetParam() == 0   ? test::tiny_model()
                    : GetParam() == 1 ? test::gpt2_like()
                    : GetParam() == 2 ? test::qwen3_like()
                    : GetParam() == 3 ? test::moe_like()
                                      : connected();
    m.init_scaled_residual = false;
    return m;
  }
};

TEST_P(Kinds, CachedDecodingEqualsFullForwards) {
  Generation<double> generation(model(), 3, 32);
  generation.parameters->initialize(generation.context, generation.tree, 3);
  const std::vector<Tokens> prompts{{5}, {1, 2, 3, 4, 5, 6}, {7, 8}};
  const std::vector<Tokens> results = generation.run(prompts, greedy(12));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(results[i], greedy_by_full_forward(model(), 3, prompts[i], 12)) << i;
}

TEST_P(Kinds, SampledSequencesDependOnTheirNumberOnlyNotOnNeighbors) {
  std::vector<Tokens> prompts;
  for (std::int32_t i = 0; i < 7; ++i) prompts.push_back(Tokens(1 + i % 3, i));
  Wanted options;
  options.sampling.temperature = 0.9;
  options.sampling.top_p = 0.95;
  options.sampling.top_k = 20;
  options.sampling.seed = 4;
  options.max_new = 15;
  std::vector<std::vector<Tokens>> results;
  for (const std::size_t batch : {1, 3, 7}) {
    Generation<double> generation(model(), batch, 32);
    generation.parameters->initialize(generation.context, generation.tree, 3);
    results.push_back(generation.run(prompts, options));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_NE(results[0][1], results[0][4]);
  options.sampling.seed = 5;
  Generation<double> generation(model(), 7, 32);
  generation.parameters->initialize(generation.context, generation.tree, 3);
  EXPECT_NE(generation.run(prompts, options), results[0]);
}

INSTANTIATE_TEST_SUITE_P(Models, Kinds, testing::Values(0, 1, 2, 3, 4));

/// Greedy tokens of a recursive model, from forwards over the whole of each prefix.
Tokens greedy_by_whole_steps(const deck::Model& m, std::size_t steps, std::uint64_t seed,
                             Tokens text, std::size_t count) {
  Tokens result;
  const model::ParameterTree tree(model::declare(m));
  for (std::size_t i = 0; i < count; ++i) {
    model::TransformerOptions options{1, text.size()};
    test::Harness<double> whole(m, options);
    whole.parameters->initialize(whole.context, whole.tree, seed);
    whole.set_batch(text, text);
    whole.transformer->embed(whole.context, whole.micro());
    for (std::size_t s = 0; s < steps; ++s)
      whole.transformer->advance(whole.context, whole.micro(), s);
    whole.transformer->logits(whole.context, 0, whole.logit_rows);
    const std::vector<double> logits = test::download(whole.logit_rows);
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(m.vocabulary);
    result.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
    text.push_back(result.back());
  }
  return result;
}

/// Each pass of each step has its own keys and values: a token sees earlier tokens as they were in
/// the same pass.
class Recursive : public testing::TestWithParam<const char*> {};

TEST_P(Recursive, CachedDecodingEqualsWholeSteps) {
  deck::Model m = test::qwen3_like();
  m.inner_steps = 2, m.recursion = GetParam();
  if (m.recursion == "block") m.initial_states = "input";
  m.logit_cap = 10;
  const std::vector<Tokens> prompts{{5}, {1, 2, 3, 4, 5, 6}, {7, 8}};
  std::vector<std::vector<Tokens>> results;
  for (const std::size_t steps : {1, 2, 4}) {
    Generation<double> generation(m, 3, 32, steps);
    generation.parameters->initialize(generation.context, generation.tree, 3);
    results.push_back(generation.run(prompts, greedy(8)));
    for (std::size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(results.back()[i], greedy_by_whole_steps(m, steps, 3, prompts[i], 8))
          << steps << " steps, prompt " << i;
  }
  EXPECT_NE(results[0], results[2]);
}

TEST_P(Recursive, LongPromptsArePrefilledInPieces) {
  deck::Model m = test::tiny_model();
  m.inner_steps = 1, m.context = 1024, m.recursion = GetParam();
  const Tokens prompt = test::random_tokens(prompt_rows + 5, m.vocabulary, 8);
  Generation<double> generation(m, 1, 300, 2);
  generation.parameters->initialize(generation.context, generation.tree, 6);
  EXPECT_EQ(generation.run({prompt}, greedy(3))[0], greedy_by_whole_steps(m, 2, 6, prompt, 3));
}

INSTANTIATE_TEST_SUITE_P(Recursions, Recursive, testing::Values("stack", "block"),
                         [](const auto& recursion) { return std::string(recursion.param); });

TEST(Texts, LongPromptsArePrefilledInPieces) {
  deck::Model m = test::tiny_model();
  m.context = 1024;
  const Tokens prompt = test::random_tokens(2 * prompt_rows + 3, m.vocabulary, 8);
  Generation<double> generation(m, 1, 1024);
  generation.parameters->initialize(generation.context, generation.tree, 6);
  EXPECT_EQ(generation.run({prompt}, greedy(3))[0], greedy_by_full_forward(m, 6, prompt, 3));
}

TEST(Texts, StopsBeforeTheStopTokenAndAtTheEndOfTheCache) {
  const deck::Model m = test::tiny_model();
  Generation<double> generation(m, 2, 12);
  generation.parameters->initialize(generation.context, generation.tree, 3);
  const std::vector<Tokens> prompts{{1, 2, 3}, {4}};
  const std::vector<Tokens> whole = generation.run(prompts, greedy(100));
  EXPECT_EQ(whole[0].size(), 9u);
  EXPECT_EQ(whole[1].size(), 11u);
  Wanted options = greedy(100);
  options.stop_tokens = {whole[0][4]};
  const auto until_stop = [&](Tokens tokens) {
    tokens.erase(std::find(tokens.begin(), tokens.end(), options.stop_tokens[0]), tokens.end());
    return tokens;
  };
  const std::vector<Tokens> stopped = generation.run(prompts, options);
  EXPECT_EQ(stopped[0], until_stop(whole[0]));
  EXPECT_EQ(stopped[1], until_stop(whole[1]));
  EXPECT_LE(stopped[0].size(), 4u);
}

TEST(Texts, DrawsNoPaddingTokens) {
  Generation<float> generation(test::tiny_model(), 1, 32);
  generation.parameters->initialize(generation.context, generation.tree, 3);
  Wanted options;
  options.sampling.temperature = 5;
  options.vocabulary = 4;
  const std::vector<Tokens> results = generation.run({Tokens{1}}, options);
  EXPECT_EQ(results[0].size(), 31u);
  for (const std::int32_t token : results[0]) EXPECT_LT(token, 4);
}

TEST(Texts, RefusesPromptsItCannotContinue) {
  Generation<float> generation(test::tiny_model(), 1, 8);
  generation.parameters->initialize(generation.context, generation.tree, 3);
  EXPECT_THROW(generation.run({Tokens{1}, Tokens{}}, greedy(1)), UserError);
  EXPECT_THROW(generation.run({Tokens(8, 1)}, greedy(1)), UserError);
  EXPECT_THROW(generation.run({Tokens{37}}, greedy(1)), UserError);
  EXPECT_THROW(generation.run({Tokens{-1}}, greedy(1)), UserError);
  EXPECT_THROW(Generation<float>(test::gpt2_like(), 1, 33), UserError);
}

}  // namespace
}  // namespace tern
