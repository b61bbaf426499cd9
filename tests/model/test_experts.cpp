// MoE layers compared with dense ones, their place in the span, and the balance of their use.
#include <fmt/format.h>

#include "model/harness.hpp"

namespace tern {
namespace {

constexpr model::TransformerOptions options{2, 9};

/// The dense model whose MLP equals each expert.
deck::Model dense_of(deck::Model m) {
  m.experts = m.experts_per_token = 0, m.ffn_hidden = m.expert_hidden, m.router_loss = 0;
  return m;
}

/// The name in the dense model.
std::string dense_name(const std::string& name) {
  const std::size_t at = name.find("experts/");
  if (at == std::string::npos) return name;
  return name.substr(0, at) + name.substr(name.find('/', at + 8) + 1);
}

bool is_router(const std::string& name) { return name.find("mlp/gate/") != std::string::npos; }

/// All experts have the parameters of the dense model's layer.
void copy_experts(const test::Harness<double>& from, test::Harness<double>& to) {
  for (const model::Parameter& p : to.tree.parameters()) {
    if (is_router(p.name)) continue;
    const model::Parameter& dense = from.tree.at(dense_name(p.name));
    Kokkos::deep_copy(Vector<double>(to.parameters->master.data() + p.offset, p.count),
                      Vector<double>(from.parameters->master.data() + dense.offset, p.count));
  }
}

/// With weights that sum to 1, k equal experts equal one dense layer, and so do their gradients
/// together.
void expect_dense(std::int64_t experts, std::int64_t of_token) {
  deck::Model m = test::moe_like();
  m.experts = experts, m.experts_per_token = of_token, m.router_loss = 0;
  test::Harness<double> moe(m, options), dense(dense_of(m), options);
  moe.parameters->initialize(moe.context, moe.tree, 5);
  dense.parameters->initialize(dense.context, dense.tree, 6);
  copy_experts(dense, moe);
  moe.set_random_batch(9), dense.set_random_batch(9);
  EXPECT_LT(test::relative_error(moe.logits(), dense.logits()), 1e-14);
  EXPECT_NEAR(moe.step(), dense.step(), 1e-14);
  for (const model::Parameter& p : dense.tree.parameters()) {
    std::vector<double> sum(p.count, 0);
    for (const model::Parameter& q : moe.tree.parameters()) {
      if (dense_name(q.name) != p.name) continue;
      const std::vector<double> of_expert = moe.gradient(q.name);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of_expert[i];
    }
    EXPECT_LT(test::relative_error(sum, dense.gradient(p.name)), 1e-12) << p.name;
  }
  for (std::int64_t l = 0; l < m.layers; ++l)
    EXPECT_LT(test::norm(moe.gradient(fmt::format("model/layers/{}/mlp/gate/weight", l))), 1e-13);
}

TEST(Experts, OneIsADenseLayer) { expect_dense(1, 1); }
TEST(Experts, EqualOnesAreADenseLayer) { expect_dense(5, 3); }
TEST(Experts, AllOfThemAreADenseLayer) { expect_dense(4, 4); }

// A zero router gives all experts the same probability and each token the first k.
TEST(Experts, BalanceOfAnEvenRouterIsTheNumberOfExpertsOfAToken) {
  test::Harness<double> model(test::moe_like(), options);
  model.parameters->initialize(model.context, model.tree, 5);
  for (const model::Parameter& p : model.tree.parameters())
    if (is_router(p.name)) model.set(p.name, std::vector<float>(p.count, 0));
  model.set_random_batch(9);
  model.step();
  EXPECT_NEAR(model.balance_term() / model.description.router_loss, 2, 1e-13);
  for (const model::Parameter& p : model.tree.parameters()) {
    const std::size_t at = p.name.find("experts/");
    if (at == std::string::npos) continue;
    const char expert = p.name[at + 8];
    EXPECT_EQ(test::norm(model.gradient(p.name)) > 0, expert == '0' || expert == '1') << p.name;
  }
}

// Descent along the gradient of the balance term only evens out the use of the experts.
TEST(Experts, BalanceFallsAlongItsGradient) {
  deck::Model m = test::moe_like();
  m.router_loss = 1;
  test::Harness<double> with(m, options);
  m.router_loss = 0;
  test::Harness<double> plain(m, options);
  const auto start = [](test::Harness<double>& model) {
    model.parameters->initialize(model.context, model.tree, 5);
    model.set_random_batch(9);
    model.step();
  };
  start(with), start(plain);
  const std::string name = "model/layers/1/mlp/gate/weight";
  const double before = with.balance_term();
  std::vector<double> weight = test::download(with.parameters->master),
                      of_loss = plain.gradient(name), of_both = with.gradient(name);
  const model::Parameter& p = with.tree.at(name);
  for (std::size_t i = 0; i < p.count; ++i)
    weight[p.offset + i] -= 0.01 * (of_both[i] - of_loss[i]);
  test::upload(weight, with.parameters->master);
  with.step();
  EXPECT_LT(with.balance_term(), before);
  EXPECT_GT(before, 2);
}

TEST(Experts, StepWithoutBalanceAfterOneWithItHasNoGradientOfIt) {
  test::Harness<double> model(test::moe_like(), options);
  model.parameters->initialize(model.context, model.tree, 5);
  model.set_random_batch(9);
  const auto without = [&] {
    Kokkos::deep_copy(model.parameters->gradient, 0);
    model.transformer->forward(model.context, model.micro());
    model.transformer->loss_backward(model.context, model.micro(), model.head, model.weights,
                                     model.losses);
    auto weight_gradients = model.transformer->weight_gradients();
    model.transformer->backward(model.context, model.micro(), weight_gradients);
    model.context.fence("step");
    return test::download(model.parameters->gradient);
  };
  const std::vector<double> first = without();
  model.step();
  EXPECT_EQ(without(), first);
}

TEST(Experts, LieAtEqualDistances) {
  for (const std::int64_t width : {12, 7})
    for (const std::size_t parts : {1, 3, 8, 64}) {
      deck::Model m = test::moe_like();
      m.expert_hidden = width;
      const model::ParameterTree tree(model::declare(m), parts, model::Division::whole_matrices);
      const auto at = [&](std::int64_t expert, const char* module) {
        return tree.at(fmt::format("model/layers/1/mlp/experts/{}/{}/weight", expert, module));
      };
      for (const char* module : {"gate_proj", "down_proj"})
        for (std::int64_t e = 1; e < m.experts; ++e) {
          EXPECT_EQ(at(e, module).offset - at(e - 1, module).offset,
                    at(1, module).offset - at(0, module).offset);
          EXPECT_EQ(at(e, module).offset % 16, 0u);
        }
      EXPECT_EQ(at(2, "gate_proj").offset + at(2, "gate_proj").count, at(2, "up_proj").offset);
      // No matrix of a layer is split.
      const std::size_t part = tree.span() / parts;
      for (const model::Parameter& p : tree.parameters()) {
        if (!p.matrix() || p.name.find("layers") == std::string::npos) continue;
        EXPECT_EQ(p.offset / part, (p.offset + p.count - 1) / part) << p.name;
      }
      const model::Parameter& down = at(0, "down_proj");
      EXPECT_EQ(down.shape, (std::vector<std::size_t>{24, static_cast<std::size_t>(width)}));
    }
}

// Qwen3-30B-A3B: the span has almost no padding, also when split into parts of whole matrices.
TEST(Experts, CountOf30BA3B) {
  deck::Model m;
  m.layers = 48, m.hidden = 2048, m.heads = 32, m.kv_heads = 4, m.head_dim = 128;
  m.ffn_hidden = 6144, m.experts = 128, m.experts_per_token = 8, m.expert_hidden = 768;
  m.vocabulary = 151936, m.qk_norm = true, m.tie_embeddings = false;
  EXPECT_EQ(model::ParameterTree(model::declare(m)).count(), 30532122624u);
  const model::ParameterTree tree(model::declare(m), 8, model::Division::whole_matrices);
  EXPECT_LT(tree.span(), 30532122624u + 8 * 2 * 768 * 2048 * 4);
}

}  // namespace
}  // namespace tern
