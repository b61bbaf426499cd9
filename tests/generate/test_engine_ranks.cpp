// The generation engine on a model divided over ranks: the same texts as on one rank.
#include "comm/mesh.hpp"
#include "engine_run.hpp"
#include "generate/rounded_weights.hpp"

namespace tern::test {
namespace {

deck::Model divisible() {
  deck::Model m = qwen3_like();
  m.layers = 4, m.vocabulary = 40, m.context = 64;
  return m;
}

std::vector<generate::Request> requests() {
  std::vector<generate::Request> all;
  for (std::uint64_t id = 0; id < 9; ++id)
    all.push_back({id, random_tokens(3 + 7 * id % 23, 40, static_cast<unsigned>(id)), 4 + id});
  all.push_back({9, all[4].prompt, 12});  // shares a beginning
  return all;
}

generate::EngineOptions options(double temperature) {
  generate::EngineOptions o;
  o.batch = 4, o.max_model_len = 64, o.prefill_tokens = 24, o.pages = 8;
  o.sampling.temperature = temperature;
  o.sampling.seed = 5;
  return o;
}

TEST(EngineOnRanks, TextsAreThoseOfOneRank) {
  const deck::Model m = divisible();
  const int ranks = comm::world()->size();
  for (const auto& [temperature, fp8_cache] :
       {std::pair{0.0, false}, std::pair{0.9, false}, std::pair{0.9, true}}) {
    generate::EngineOptions o = options(temperature);
    o.fp8_cache = fp8_cache;
    EngineRun<float> alone(m, o);
    const auto wanted = alone.answer(requests());
    for (int tensor = 1; tensor <= ranks; tensor *= 2) {
      if (tensor == 1 && ranks > 2) continue;
      const comm::Mesh mesh(
          comm::world(), {1, tensor, ranks / tensor},
          static_cast<int>(model::kv_replicas(m, static_cast<std::size_t>(tensor))));
      EngineRun<float> run(m, o, 3, model::share_of(mesh));
      const auto answers = run.answer(requests());
      for (const auto& [id, answer] : wanted) {
        EXPECT_EQ(answers.at(id).tokens, answer.tokens) << "tensor " << tensor << ", " << id;
        EXPECT_EQ(answers.at(id).finish_reason, answer.finish_reason);
      }
      EXPECT_EQ(run.engine->stats().reused_tokens, alone.engine->stats().reused_tokens);
    }
  }
}

/// Each rank rounds its own part.
TEST(EngineOnRanks, WeightsInFp8AreRoundedByPart) {
  const deck::Model m = divisible();
  const int ranks = comm::world()->size();
  for (int tensor = 1; tensor <= ranks; tensor *= 2) {
    const comm::Mesh mesh(
        comm::world(), {1, tensor, ranks / tensor},
        static_cast<int>(model::kv_replicas(m, static_cast<std::size_t>(tensor))));
    generate::EngineOptions o = options(0.9);
    EngineRun<float> beforehand(m, o, 3, model::share_of(mesh));
    round_maps(beforehand.tree, *beforehand.parameters);
    o.fp8_weights = true;
    EngineRun<float> run(m, o, 3, model::share_of(mesh));
    const auto wanted = beforehand.answer(requests()), answers = run.answer(requests());
    for (const auto& [id, answer] : wanted)
      EXPECT_EQ(answers.at(id).tokens, answer.tokens) << "tensor " << tensor << ", " << id;
  }
}

/// The inputs of a map that ranks divide by columns have a scale per rank.
TEST(EngineOnRanks, PipelinesRoundInputsAsOneRank) {
  const deck::Model m = divisible();
  const int ranks = comm::world()->size();
  generate::EngineOptions o = options(0.9);
  o.fp8_weights = o.fp8_inputs = true;
  EngineRun<float> alone(m, o);
  const auto wanted = alone.answer(requests());
  const comm::Mesh mesh(comm::world(), {1, 1, ranks});
  EngineRun<float> run(m, o, 3, model::share_of(mesh));
  const auto answers = run.answer(requests());
  for (const auto& [id, answer] : wanted) EXPECT_EQ(answers.at(id).tokens, answer.tokens) << id;
}

TEST(EngineOnRanks, APageTakesWhatTheShareKeeps) {
  const deck::Model m = divisible();  // 2 key-value heads
  using Engine = generate::Engine<float>;
  const std::size_t whole = Engine::page_bytes(m);
  EXPECT_EQ(Engine::page_bytes(m, {0, 2, 0, 1, nullptr}), whole / 2);
  EXPECT_EQ(Engine::page_bytes(m, {3, 4, 0, 1, nullptr}), whole / 2);
  EXPECT_EQ(Engine::page_bytes(m, {1, 2, 1, 2, nullptr}), whole / 4);
}

}  // namespace
}  // namespace tern::test
