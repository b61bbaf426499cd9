// Times the generation engine with random weights: prompts only, and prompts with new tokens.
//
//   [mpirun -n RANKS] engine [name=value ...]     ranks divide the model: pipeline stages, tensor ranks
//   (names and defaults: Settings below; the model is Qwen3-4B)
//
// prefill: requests x prompt tokens over the time until each has its first token. decode: requests
// x (new - 1) tokens over the time that they take beyond that. requests = 0: as many as streams,
// which are served at once. Prompts are random, all different, and redrawn for each repeat, so the
// prefix cache finds only the first `shared` tokens, which all have in common. fp8_weights = 1: those
// of linear maps are in fp8; fp8_inputs = 1: their inputs as well; fp8_cache = 1: keys and values.
// profile = 1 prints the operations of one pass that decodes, profile = 2 those of one of prompts.
// turns = 1: instead of `repeats`, one for each line of standard input, whose seconds it prints at
// once (bench/turns.py).
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/mesh.hpp"
#include "generate/engine.hpp"
#include "model/declare.hpp"
#include "plan/throughput.hpp"
#include "profile/profile.hpp"
#include "workload/division.hpp"

namespace {

using namespace tern;

using Storage = std::conditional_t<on_host, float, bf16>;

struct Settings {
  std::map<std::string, long> values{{"layers", 36},
                                     {"hidden", 2560},
                                     {"heads", 32},
                                     {"kv_heads", 8},
                                     {"head_dim", 128},
                                     {"ffn", 9728},
                                     {"experts", 0},
                                     {"experts_per_token", 8},
                                     {"expert_hidden", 768},
                                     {"tied", 1},
                                     {"vocabulary", 151936},
                                     {"streams", 64},
                                     {"requests", 0},
                                     {"prompt", 512},
                                     {"shared", 0},
                                     {"new", 64},
                                     {"prefill_tokens", 2048},
                                     {"prefix_cache", 1},
                                     {"pipeline", 1},
                                     {"fp8_weights", 0},
                                     {"fp8_inputs", 0},
                                     {"fp8_cache", 0},
                                     {"temperature_percent", 0},
                                     {"top_k", 0},
                                     {"profile", 0},
                                     {"turns", 0},
                                     {"repeats", 5}};

  explicit Settings(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string text = argv[i];
      const std::size_t at = text.find('=');
      const auto found = values.find(text.substr(0, at));
      if (at == std::string::npos || found == values.end())
        user_error("'{}': give name=value with one of the names in bench/engine.cpp", text);
      found->second = std::stol(text.substr(at + 1));
    }
  }
  std::size_t operator()(const char* name) const {
    return static_cast<std::size_t>(values.at(name));
  }
};

deck::Model model_of(const Settings& s) {
  deck::Model m;
  m.layers = s.values.at("layers"), m.hidden = s.values.at("hidden");
  m.heads = s.values.at("heads"), m.kv_heads = s.values.at("kv_heads");
  m.head_dim = s.values.at("head_dim"), m.ffn_hidden = s.values.at("ffn");
  m.vocabulary = s.values.at("vocabulary"), m.tie_embeddings = s.values.at("tied") != 0;
  if (s("experts") > 0) {
    m.experts = s.values.at("experts"), m.expert_hidden = s.values.at("expert_hidden");
    m.experts_per_token = s.values.at("experts_per_token");
  }
  m.qk_norm = true, m.norm_eps = 1e-6, m.rope_base = 1e6;
  m.context = static_cast<std::int64_t>(s("prompt") + s("new"));
  return m;
}

generate::EngineOptions options_of(const Settings& s) {
  generate::EngineOptions options;
  options.batch = s("streams"), options.max_model_len = s("prompt") + s("new");
  options.prefill_tokens = s("prefill_tokens");
  options.prefix_cache = s("prefix_cache") != 0;
  options.fp8_weights = s("fp8_weights") != 0;
  options.fp8_inputs = s("fp8_inputs") != 0;
  options.fp8_cache = s("fp8_cache") != 0;
  options.sampling.temperature = static_cast<double>(s("temperature_percent")) / 100;
  options.sampling.top_k = static_cast<int>(s("top_k"));
  return options;
}

struct Program {
  Program(const deck::Model& m, const generate::EngineOptions& options, const comm::Mesh& mesh,
          Arena& arena)
      : tree(model::declare(m), 1, model::Division::anywhere, model::share_of(mesh)),
        context(ops::make_context(arena, true, "auto")),
        parameters(tree, model::Purpose::inference, arena),
        engine(m, tree, parameters, options, arena) {}
  model::ParameterTree tree;
  ops::Context context;
  model::Parameters<Storage> parameters;
  generate::Engine<Storage> engine;
};

std::size_t requests_per_run(const Settings& s) {
  return s("requests") > 0 ? s("requests") : s("streams");
}

/// Median and range of figures.
struct Figure {
  std::vector<double> values;
  void print(const char* name, const char* unit) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    std::printf("RESULT %-22s %10.1f %s (%.1f to %.1f, %zu times)\n", name,
                values[values.size() / 2], unit, values.front(), values.back(), values.size());
  }
};

class Bench {
 public:
  Bench(const Settings& settings, Program& program) : s_(settings), program_(program) {}

  /// Seconds until every stream has `count` new tokens. Passes that only decode, all streams of a
  /// micro-batch at once, are also timed separately.
  double run(std::size_t count) {
    for (std::size_t i = 0; i < requests_per_run(s_); ++i) {
      std::vector<std::int32_t> prompt(s_("prompt"));
      for (std::size_t t = 0; t < prompt.size(); ++t)
        prompt[t] =
            static_cast<std::int32_t>(philox(1, Stream::test, t < s_("shared") ? 0 : requests_ + 1,
                                             0, static_cast<std::uint32_t>(t))
                                          .word[0] %
                                      static_cast<std::uint32_t>(s_("vocabulary")));
      program_.engine.submit({requests_++, prompt, count});
    }
    const double begin = now();
    const std::size_t computed_at_start = program_.engine.stats().computed_tokens;
    std::size_t answered = 0;
    while (program_.engine.busy()) {
      const generate::Stats before = program_.engine.stats();
      std::optional<profile::Profile> profile;
      const bool begun =
          s_("profile") == 2 ? before.computed_tokens > computed_at_start : !passes.empty();
      if (to_profile && begun) profile.emplace([this] { program_.context.fence("profile"); });
      const double start = now();
      for (const generate::Answer& answer : program_.engine.step(program_.context)) {
        ++answered;
        TERN_REQUIRE(answer.tokens.size() == count, "{} tokens of {}: {}", answer.tokens.size(),
                     count, answer.reason);
      }
      if (profile) print(*profile);
      const generate::Stats after = program_.engine.stats();
      if (after.computed_tokens == before.computed_tokens &&
          after.new_tokens - before.new_tokens == s_("streams") / s_("pipeline"))
        passes.push_back(now() - start);
    }
    TERN_REQUIRE(answered == requests_per_run(s_), "{} answers", answered);
    return now() - begin;
  }
  std::vector<double> passes;
  bool to_profile = false;  // the next pass after one of the kind that Settings name

 private:
  static profile::Ceilings ceilings() {
    deck::Deck deck;
    deck.precision.compute = "bf16";
    const auto rates = plan::device_rates(deck);
    return rates ? profile::Ceilings{rates->flops, 0, rates->bytes} : profile::Ceilings{};
  }
  void print(profile::Profile& profile) {
    profile.finish();
    to_profile = false;
    std::printf("%s\n", profile.trouble().empty() ? profile.table(1, ceilings()).c_str()
                                                  : ("no profile: " + profile.trouble()).c_str());
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  const Settings& s_;
  Program& program_;
  std::uint64_t requests_ = 0;
};

/// Waits for the line that asks for another repeat; false at the end of standard input.
bool next_turn() {
  std::printf("READY\n");
  std::fflush(stdout);
  std::string line;
  return static_cast<bool>(std::getline(std::cin, line));
}

/// Mesh whose ranks all divide the model.
std::unique_ptr<comm::Mesh> dividing_mesh(const deck::Model& model, int pipeline) {
  auto world = comm::world();
  const comm::Extents extents =
      comm::extents_for(world->size(), 1, world->size() / pipeline, pipeline);
  workload::check_division(model, extents.tensor, extents.pipeline);
  const std::size_t kv_replicas =
      model::kv_replicas(model, static_cast<std::size_t>(extents.tensor));
  return std::make_unique<comm::Mesh>(std::move(world), extents, static_cast<int>(kv_replicas));
}

void measure(const Settings& s) {
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  const deck::Model model = model_of(s);
  const auto mesh = dividing_mesh(model, static_cast<int>(s("pipeline")));
  if (s("turns") > 0 && mesh->world().size() > 1)
    user_error("turns = 1 is for one rank: others have no standard input");
  const generate::EngineOptions options = options_of(s);
  Arena plan;
  {
    const Program measured(model, options, *mesh, plan);
    std::printf("%.2f B parameters on each of %d ranks, %zu x %zu, %s\n",
                static_cast<double>(measured.tree.count()) / 1e9, mesh->world().size(), s("layers"),
                s("hidden"), type_name<Storage>());
  }
  for (const Term term :
       {Term::parameters, Term::activations, Term::workspace, Term::data, Term::cache})
    std::printf("  %-18s %8.3f GiB\n", term_name(term),
                static_cast<double>(plan.bytes(term)) / gib);
  const std::size_t free_before = device_capacity().free_bytes;
  Arena arena(plan.bytes());
  Program program(model, options, *mesh, arena);
  program.engine.prepare(program.context);
  program.parameters.initialize(program.context, program.tree, 1);
  program.engine.round_weights(program.context);
  program.context.fence("weights");
  Bench bench(s, program);
  bench.run(s("new"));  // libraries, plans
  if (s("profile") > 0) {
    bench.passes.clear();
    bench.to_profile = true;
    bench.run(s("new"));
  }
  bench.passes.clear();
  Figure prefill, decode, whole, pass;
  const double requests = static_cast<double>(requests_per_run(s));
  const bool turns = s("turns") > 0;
  for (std::size_t i = 0; turns ? next_turn() : i < s("repeats"); ++i) {
    const double first = bench.run(1), all = bench.run(s("new"));
    if (turns) std::printf("TURN %.9f %.9f\n", first, all);
    prefill.values.push_back(requests * static_cast<double>(s("prompt")) / first);
    decode.values.push_back(requests * static_cast<double>(s("new") - 1) / (all - first));
    whole.values.push_back(requests * static_cast<double>(s("new")) / all);
  }
  for (const double seconds : bench.passes)
    pass.values.push_back(static_cast<double>(s("streams") / s("pipeline")) / seconds);
  std::printf("memory planned %.3f GiB, taken %.3f GiB (of the device)\n",
              static_cast<double>(plan.bytes()) / gib,
              static_cast<double>(free_before - device_capacity().free_bytes) / gib);
  prefill.print("prefill", "tokens/s");
  decode.print("decode", "tokens/s");
  whole.print("prefill and decode", "new tokens/s");
  for (double& rate : whole.values) rate *= 60 / static_cast<double>(s("new"));
  whole.print("requests", "a minute");
  const generate::Stats stats = program.engine.stats();
  std::printf("of %zu prompt tokens %zu were computed and %zu found; %zu of %zu pages at most\n",
              stats.prompt_tokens, stats.computed_tokens, stats.reused_tokens, stats.peak_pages,
              stats.pages);
  pass.print("a pass that decodes", "tokens/s");
}

}  // namespace

int main(int argc, char** argv) {
  comm::Session session(&argc, &argv);
  return comm::run_ranks([&] {
    const Kokkos::ScopeGuard guard(
        Kokkos::InitializationSettings().set_device_id(session.device()));
    // All ranks print the same: rank 0's output suffices.
    if (session.rank() > 0 && !std::freopen("/dev/null", "w", stdout)) return 1;
    measure(Settings(argc, argv));
    return 0;
  });
}
