/// An engine with a model of random weights in an arena of its own.
#pragma once
#include <map>
#include <optional>

#include "generate/engine.hpp"
#include "model/harness.hpp"

namespace tern::test {

using Tokens = std::vector<std::int32_t>;

template <class T>
struct EngineRun {
  EngineRun(const deck::Model& m, const generate::EngineOptions& options, std::uint64_t seed = 3,
            const model::ModelShard& share = {})
      : tree(model::declare(m), 1, model::Division::anywhere, share),
        arena(planned(m, options, share)) {
    request(m, options, arena);
    engine->prepare(context);
    parameters->initialize(context, tree, seed);
    engine->round_weights(context);
  }

  /// The answers by id. Every request gets exactly one.
  std::map<std::uint64_t, generate::Answer> answer(const std::vector<generate::Request>& requests) {
    for (const generate::Request& r : requests) engine->submit(r);
    std::map<std::uint64_t, generate::Answer> answers;
    while (engine->busy())
      for (generate::Answer& a : engine->step(context)) {
        EXPECT_EQ(answers.count(a.id), 0u) << a.id;
        answers[a.id] = std::move(a);
      }
    EXPECT_EQ(answers.size(), requests.size());
    return answers;
  }

  static std::size_t planned(const deck::Model& m, const generate::EngineOptions& options,
                             const model::ModelShard& share = {}) {
    Arena measure;
    EngineRun plan{model::ParameterTree(model::declare(m), 1, model::Division::anywhere, share)};
    plan.request(m, options, measure);
    return measure.bytes();
  }

  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  std::optional<model::Parameters<T>> parameters;
  std::optional<generate::Engine<T>> engine;

 private:
  explicit EngineRun(model::ParameterTree t) : tree(std::move(t)) {}
  void request(const deck::Model& m, const generate::EngineOptions& options, Arena& from) {
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, model::Purpose::inference, from);
    engine.emplace(m, tree, *parameters, options, from);
  }
};

}  // namespace tern::test
