// Muon compared with the golden values of torch.optim.Muon's formulas, and its own guarantees:
// singular values, AdamW for the rest, whole matrices in every division over ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/golden.hpp"
#include "model/declare.hpp"
#include "optimizer/muon.hpp"
#include "optimizer/optimizer.hpp"

namespace tern::optimizer {
namespace {

deck::Deck small_deck(std::int64_t layers = 1) {
  deck::Deck deck;
  deck.model.layers = layers;
  deck.model.hidden = 8;
  deck.model.heads = 2;
  deck.model.kv_heads = 1;
  deck.model.head_dim = 8;
  deck.model.ffn_hidden = 20;
  deck.model.vocabulary = 30;
  deck.model.context = 8;
  deck.model.tie_embeddings = false;
  deck.optimizer.kind = "muon";
  return deck;
}

/// Everything one update needs, on a single rank.
template <class T>
struct SingleRank {
  using A = Accumulate<T>;

  explicit SingleRank(const deck::Deck& deck) : SingleRank(deck, Muon<T>::default_group_bytes) {}
  SingleRank(const deck::Deck& deck, std::size_t group_bytes)
      : tree(model::declare(deck.model)),
        arena(std::size_t{1} << 20),
        context(ops::make_context(arena, false, "portable")),
        parameters(tree, model::Purpose::training, arena),
        update(deck.optimizer.kind == "muon"
                   ? std::make_unique<Muon<T>>(deck.optimizer, tree, Range{0, tree.span()}, arena,
                                               group_bytes)
                   : make_update<T>(deck.optimizer, tree, Range{0, tree.span()}, tree.decayed(),
                                    arena)),
        scale(arena.vector<A>("scale", Term::workspace, 1)) {
    Kokkos::deep_copy(scale, A(1));
    parameters.initialize(context, tree, 7);
  }
  template <class Values>
  void set(Vector<A> span, const std::string& name, const Values& values) {
    const model::Parameter& p = tree.at(name);
    ASSERT_EQ(p.count, values.size());
    HostVector<A> host("host", p.count);
    for (std::size_t i = 0; i < p.count; ++i) host(i) = static_cast<A>(values[i]);
    Kokkos::deep_copy(Kokkos::subview(span, Kokkos::make_pair(p.offset, p.offset + p.count)), host);
  }
  template <class V>
  std::vector<double> get(const V& span, std::size_t first, std::size_t count) const {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, span);
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<double>(static_cast<A>(host(first + i)));
    return values;
  }
  std::vector<double> weights(const std::string& name) const {
    return get(parameters.master, tree.at(name).offset, tree.at(name).count);
  }
  void step(double rate, std::int64_t number) {
    update->apply(context, parameters, scale, rate, number);
    context.fence("update");
  }

  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  model::Parameters<T> parameters;
  std::unique_ptr<Update<T>> update;
  Vector<A> scale;
};

constexpr const char* matrices[] = {"self_attn/q_proj", "self_attn/k_proj", "self_attn/v_proj",
                                    "self_attn/o_proj", "mlp/gate_proj",    "mlp/up_proj",
                                    "mlp/down_proj"};

std::string in_layer(const std::string& matrix) { return "model/layers/0/" + matrix + "/weight"; }

double gradient(std::size_t i, int step) {
  return 0.01 * std::sin(0.37 * static_cast<double>(i * i % 1009) + 0.5 * step);
}

/// `numbers` rows of step `number` from 0.
std::vector<double> slice(const std::vector<double>& numbers, std::size_t step, std::size_t count) {
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(step * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

struct Differences {
  double exact = 0, torch = 0;
};

template <class T>
Differences against_golden(const std::string& scale) {
  const test::Golden golden(TERN_SOURCE_DIR "/tests/golden/muon.h5");
  deck::Deck deck = small_deck();
  deck.optimizer.muon_scale = scale;
  deck.optimizer.lr = 0.5;  // the schedule is proportional to it
  deck.optimizer.matrix_lr = golden.number("lr");
  deck.optimizer.momentum = golden.number("momentum");
  deck.optimizer.weight_decay = golden.number("weight_decay");
  SingleRank<T> world(deck);
  for (const char* m : matrices)
    world.set(world.parameters.master, in_layer(m), golden.numbers(std::string(m) + "/start"));
  Differences worst;
  for (std::size_t step = 0; step < 4; ++step) {
    for (const char* m : matrices)
      world.set(world.parameters.gradient, in_layer(m),
                slice(golden.numbers(std::string(m) + "/gradients"), step,
                      world.tree.at(in_layer(m)).count));
    world.step(deck.optimizer.lr, static_cast<std::int64_t>(step) + 1);
    for (const char* m : matrices) {
      const auto found = world.weights(in_layer(m));
      const std::string results = std::string(m) + "/" + scale;
      const auto difference = [&](const char* kind) {
        return largest_difference(found,
                                  slice(golden.numbers(results + "/" + kind), step, found.size()));
      };
      worst.exact = std::max(worst.exact, difference("exact"));
      worst.torch = std::max(worst.torch, difference("torch"));
    }
  }
  const State<T> momentum = world.update->states().front();
  EXPECT_EQ(momentum.name, "momentum_buffer");
  for (const char* m : matrices) {
    const model::Parameter& p = world.tree.at(in_layer(m));
    EXPECT_LE(
        largest_difference(world.get(momentum.values, p.offset - momentum.held.first, p.count),
                           golden.numbers(std::string(m) + "/momentum_buffer")),
        (std::is_same_v<T, double> ? 1e-15 : 1e-8));
  }
  return worst;
}

class MuonScale : public testing::TestWithParam<const char*> {};

TEST_P(MuonScale, AgreesWithPyTorch) {
  const Differences wide = against_golden<double>(GetParam());
  const Differences narrow = against_golden<float>(GetParam());
  std::printf("largest difference: fp64 %.1e, fp32 %.1e; from torch's own, in bf16: %.1e\n",
              wide.exact, narrow.exact, wide.torch);
  EXPECT_LE(wide.exact, 1e-10);
  EXPECT_LE(narrow.exact, 1e-5);
  // 2^-8 per rounding, for steps of 0.02 with a scale of at most sqrt(20 / 8).
  EXPECT_LE(wide.torch, 4 * 0.02 * std::sqrt(2.5) / 64);
  EXPECT_GT(wide.torch, 1e-6) << "torch is expected to round";
}

INSTANTIATE_TEST_SUITE_P(Kinds, MuonScale, testing::Values("original", "match_rms_adamw"));

/// Bytes of the workspace of that name.
std::size_t bytes_of(const Arena& arena, const std::string& name) {
  for (const Arena::Request& r : arena.requests())
    if (r.name == name) return r.bytes;
  ADD_FAILURE() << name << " was not asked for";
  return 0;
}

/// However the matrices are grouped, the parameters are the same, bit for bit.
template <class T>
void check_groups() {
  using Product = std::conditional_t<std::is_same_v<Device, Kokkos::DefaultHostExecutionSpace>,
                                     Accumulate<T>, T>;
  const deck::Deck deck = small_deck(5);  // ten of (8, 8) and (20, 8), five of the others
  constexpr std::size_t largest = 20 * 8 * sizeof(Product);
  std::vector<double> single;
  std::size_t bytes = 0;
  for (const std::size_t group : {std::size_t{0}, 2 * largest, 3 * largest, std::size_t{1} << 20}) {
    SingleRank<T> world(deck, group);
    EXPECT_GT(bytes_of(world.arena, "muon x"), bytes);
    bytes = bytes_of(world.arena, "muon x");
    for (int step = 1; step <= 2; ++step) {
      for (const model::Parameter& p : world.tree.parameters()) {
        std::vector<double> values(p.count);
        for (std::size_t i = 0; i < p.count; ++i) values[i] = gradient(p.offset + i, step);
        world.set(world.parameters.gradient, p.name, values);
      }
      world.step(0.01, step);
    }
    const auto found = world.get(world.parameters.master, 0, world.tree.span());
    if (single.empty()) single = found;
    EXPECT_EQ(found, single) << type_name<T>() << ", groups of " << group << " bytes";
  }
  EXPECT_EQ(bytes, 10 * largest);
}

TEST(Muon, GroupsOfAnySizeGiveTheSame) {
  check_groups<double>();
  check_groups<float>();
  check_groups<bf16>();
  check_groups<fp16>();
}

template <class T>
void check_the_rest_is_adamw() {
  deck::Deck muon = small_deck(), adamw = small_deck();
  muon.optimizer.lr = 1e-3;
  muon.optimizer.embed_lr = 4e-3;  // a power of two times lr: proportions without rounding
  adamw.optimizer.kind = "adamw";
  SingleRank<T> a(muon), b(adamw);
  for (int step = 1; step <= 3; ++step) {
    for (const model::Parameter& p : a.tree.parameters()) {
      std::vector<double> values(p.count);
      for (std::size_t i = 0; i < p.count; ++i) values[i] = gradient(p.offset + i, step);
      a.set(a.parameters.gradient, p.name, values);
      b.set(b.parameters.gradient, p.name, values);
    }
    a.step(0.5e-3, step);
    b.step(2e-3, step);
  }
  int others = 0;
  for (const model::Parameter& p : a.tree.parameters()) {
    const bool in_block = p.matrix() && p.name.find("layers") != std::string::npos;
    others += !in_block;
    const auto same = [&](const auto& x, const auto& y) {
      return a.get(x, p.offset, p.count) == b.get(y, p.offset, p.count);
    };
    EXPECT_EQ(same(a.parameters.master, b.parameters.master), !in_block) << p.name;
    EXPECT_EQ(same(a.parameters.compute, b.parameters.compute), !in_block) << p.name;
  }
  EXPECT_EQ(others, 2 + 3);  // embedding and head; two norms of the layer and the last
}

TEST(Muon, HeadAndVectorsHaveARateOfTheirOwn) {
  deck::Deck both = small_deck(), own = small_deck();
  own.optimizer.lr = both.optimizer.lr = 1e-3;
  own.optimizer.embed_lr = both.optimizer.embed_lr = 4e-3;
  own.optimizer.head_lr = 2e-3;
  SingleRank<double> a(both), b(own);
  for (const model::Parameter& p : a.tree.parameters()) {
    const std::vector<double> values(p.count, 0.5);
    a.set(a.parameters.gradient, p.name, values);
    b.set(b.parameters.gradient, p.name, values);
  }
  const std::string embedding = "model/embed_tokens/weight", head = "lm_head/weight";
  const std::string matrix = in_layer("mlp/gate_proj"), gain = "model/norm/weight";
  const auto old_gain = a.weights(gain);
  a.step(1e-3, 1);
  b.step(1e-3, 1);
  EXPECT_EQ(a.weights(embedding), b.weights(embedding));
  EXPECT_EQ(a.weights(matrix), b.weights(matrix));
  EXPECT_NE(a.weights(head), b.weights(head));
  // Vectors do not decay: half the rate, half the step.
  for (std::size_t i = 0; i < old_gain.size(); ++i)
    EXPECT_NEAR(old_gain[i] - b.weights(gain)[i], (old_gain[i] - a.weights(gain)[i]) / 2, 1e-12);
}

TEST(Muon, EmbeddingsHeadAndVectorsAreAdamWs) {
  check_the_rest_is_adamw<double>();
  check_the_rest_is_adamw<float>();
  check_the_rest_is_adamw<bf16>();
  check_the_rest_is_adamw<fp16>();
}

TEST(Muon, ComputeValuesAreTheRoundedMasters) {
  SingleRank<bf16> world(small_deck());
  world.set(world.parameters.gradient, in_layer("mlp/gate_proj"), std::vector<double>(160, 0.25));
  const auto before = world.weights(in_layer("mlp/gate_proj"));
  world.step(0.01, 1);
  EXPECT_NE(world.weights(in_layer("mlp/gate_proj")), before);
  const auto master = world.get(world.parameters.master, 0, world.tree.span());
  const auto compute = world.get(world.parameters.compute, 0, world.tree.span());
  for (std::size_t i = 0; i < master.size(); ++i)
    ASSERT_EQ(compute[i], float(bf16(static_cast<float>(master[i]))));
}

TEST(Muon, ASkippedStepChangesNothing) {
  SingleRank<float> world(small_deck());
  Kokkos::deep_copy(world.parameters.gradient, 0.5f);
  world.step(0.01, 1);
  const auto before = world.get(world.parameters.master, 0, world.tree.span());
  const auto momentum = world.update->states().front().values;
  const auto kept = world.get(momentum, 0, momentum.size());
  for (const float scale : {0.0f, std::nanf("")}) {
    Kokkos::deep_copy(world.scale, scale);
    Kokkos::deep_copy(world.parameters.gradient, std::nanf(""));
    world.step(0.01, 2);
    EXPECT_EQ(world.get(world.parameters.master, 0, world.tree.span()), before);
    EXPECT_EQ(world.get(momentum, 0, momentum.size()), kept);
  }
}

TEST(Muon, EachParameterHasItsStatesOnce) {
  const SingleRank<float> world(small_deck(2));
  for (const model::Parameter& p : world.tree.parameters()) {
    std::vector<std::string> names;
    for (const auto& state : world.update->states())
      if (p.offset >= state.covered.first && p.offset < state.covered.end())
        names.push_back(state.name);
    const bool in_block = p.matrix() && p.name.find("layers") != std::string::npos;
    EXPECT_EQ(names, in_block ? std::vector<std::string>{"momentum_buffer"}
                              : (std::vector<std::string>{"exp_avg", "exp_avg_sq"}))
        << p.name;
  }
}

class MuonSharding : public testing::TestWithParam<const char*> {};

/// Ranks with sharded or whole states give what a single rank gives from the summed gradient.
TEST_P(MuonSharding, GivesWhatOneRankGives) {
  deck::Deck deck = small_deck(3);
  deck.parallel.shard = GetParam();
  deck.optimizer.grad_clip = 0;
  const auto group = comm::world();
  SingleRank<double> alone(deck);
  const model::ParameterTree tree(model::declare(deck.model),
                                  static_cast<std::size_t>(group->size()), division(deck));
  Arena arena(std::size_t{1} << 20);
  const ops::Context context = ops::make_context(arena, false, "portable");
  model::Parameters<double> parameters(tree, model::Purpose::training, arena);
  Optimizer<double> optimizer(deck, tree, parameters, *group, arena);
  parameters.initialize(context, tree, 7);
  for (int step = 1; step <= 3; ++step) {
    const auto host = Kokkos::create_mirror(Kokkos::HostSpace{}, parameters.gradient);
    Kokkos::deep_copy(host, 0.0);
    for (const model::Parameter& p : tree.parameters()) {
      std::vector<double> sum(p.count, 0.0);
      const std::size_t name = alone.tree.at(p.name).offset;
      for (std::size_t i = 0; i < p.count; ++i) {
        for (int rank = 0; rank < group->size(); ++rank)
          sum[i] += gradient(name + i, step + 7 * rank);
        host(p.offset + i) = gradient(name + i, step + 7 * group->rank());
      }
      alone.set(alone.parameters.gradient, p.name, sum);
    }
    Kokkos::deep_copy(parameters.gradient, host);
    optimizer.reduce_gradients(context);
    EXPECT_TRUE(optimizer.update(context, 0.01, step).applied);
    optimizer.gather_parameters(context);
    alone.step(0.01, step);
  }
  const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, parameters.compute);
  for (const model::Parameter& p : tree.parameters())
    for (std::size_t i = 0; i < p.count; ++i)
      ASSERT_NEAR(found(p.offset + i), alone.weights(p.name)[i], 1e-11) << p.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, MuonSharding, testing::Values("none", "optimizer"));

}  // namespace
}  // namespace tern::optimizer
