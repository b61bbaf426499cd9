/// A transformer in an arena of its own, with host data in and out.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/declare.hpp"
#include "model/transformer.hpp"

namespace tern::test {

/// A small resolved model with Llama's architecture.
inline deck::Model tiny_model() {
  deck::Model m;
  m.layers = 2, m.hidden = 24, m.heads = 4, m.kv_heads = 2, m.head_dim = 6, m.ffn_hidden = 20;
  m.context = 32, m.vocabulary = 37, m.init_std = 0.3;
  return m;
}

inline deck::Model gpt2_like() {
  deck::Model m = tiny_model();
  m.kv_heads = 4, m.activation = "gelu", m.norm = "layernorm", m.position = "learned";
  m.attention_bias = m.ffn_bias = true;
  return m;
}

inline deck::Model qwen3_like() {
  deck::Model m = tiny_model();
  m.qk_norm = true, m.head_dim = 10, m.tie_embeddings = false;
  return m;
}

/// A small resolved model with Qwen3-MoE's architecture.
inline deck::Model moe_like() {
  deck::Model m = qwen3_like();
  m.experts = 6, m.experts_per_token = 2, m.expert_hidden = 12, m.router_loss = 0.1;
  return m;
}

template <class T, class U>
void upload(const std::vector<U>& from, const Vector<T>& to) {
  ASSERT_EQ(from.size(), to.extent(0));
  const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), to);
  for (std::size_t i = 0; i < from.size(); ++i) host(i) = static_cast<T>(from[i]);
  Kokkos::deep_copy(to, host);
}

/// Any contiguous view, as doubles.
template <class V>
std::vector<double> download(const V& from) {
  using T = typename V::non_const_value_type;
  const Vector<const T> flat(from.data(), from.size());
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), flat);
  std::vector<double> result(flat.extent(0));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<double>(host(i));
  return result;
}

inline double norm(const std::vector<double>& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  return distance(a, b) / norm(b);
}

inline std::vector<std::int32_t> random_tokens(std::size_t count, std::int64_t vocabulary,
                                               unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(generator() % static_cast<unsigned>(vocabulary));
  return tokens;
}

template <class T>
class Harness {
 public:
  using A = Accumulate<T>;

  Harness(const deck::Model& m, const model::TransformerOptions& o,
          const model::ModelShard& share = {})
      : description(m),
        options(o),
        tree(model::declare(m), 1, model::Division::anywhere, share),
        arena(plan(m, tree, o)) {
    request(arena);
    transformer->prepare(context);
  }

  /// Bytes that a measuring arena adds up for the same requests.
  static std::size_t plan(const deck::Model& m, const model::ParameterTree& tree,
                          const model::TransformerOptions& o) {
    Arena measure;
    Harness planned(m, o, tree);
    planned.request(measure);
    return measure.bytes();
  }

  void set(const std::string& name, const std::vector<float>& values) {
    const model::Parameter& p = tree.at(name);
    upload(values, Vector<A>(parameters->master.data() + p.offset, p.count));
  }

  void set_batch(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& wanted) {
    upload(inputs, tokens);
    upload(wanted, targets);
    std::vector<std::int32_t> rows(inputs.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) {
      return inputs[static_cast<std::size_t>(a)] < inputs[static_cast<std::size_t>(b)];
    });
    upload(rows, order);
    scored = std::count_if(wanted.begin(), wanted.end(), [](auto t) { return t >= 0; });
    upload(std::vector<double>(wanted.size(), 1.0 / static_cast<double>(scored)), weights);
  }

  void set_random_batch(unsigned seed) {
    const std::size_t rows = options.batch * options.tokens;
    set_batch(random_tokens(rows, description.vocabulary, seed),
              random_tokens(rows, description.vocabulary, seed + 1));
  }

  std::vector<double> logits(const ops::DropoutKey& dropout = {}) {
    transformer->forward(context, micro(dropout));
    transformer->logits(context, 0, logit_rows);
    return download(logit_rows);
  }

  double loss() {
    transformer->forward(context, micro());
    transformer->loss(context, micro(), head, losses);
    weigh_experts();
    return mean_loss() + balance_term();
  }

  /// Forward and backward; overwrites the gradients. Returns the mean loss, which includes the
  /// model's router_loss in training.
  double step(const ops::DropoutKey& dropout = {}) {
    Kokkos::deep_copy(parameters->gradient, A(0));
    model::MicroBatch<T> given = micro(dropout);
    auto weight_gradients = transformer->weight_gradients();
    transformer->forward(context, given);
    transformer->loss_backward(context, given, head, weights, losses);
    given.balanced = weigh_experts();
    transformer->backward(context, given, weight_gradients);
    transformer->embed_backward(context, given);
    weight_gradients.run_later(context);
    context.fence("step");
    return mean_loss() + balance_term();
  }

  /// The micro-batch that was set.
  model::MicroBatch<T> micro(const ops::DropoutKey& dropout = {}) const {
    return {.rows = {tokens, order},
            .pattern = pattern,
            .scored = {{}, targets},
            .dropout = dropout,
            .first = first};
  }

  /// Load-balancing term of the loss; in training.
  double balance_term() const {
    return balance.extent(0) > 0 ? description.router_loss * download(balance)[0] : 0;
  }

  std::vector<double> gradient(const std::string& name) const {
    const model::Parameter& p = tree.at(name);
    return download(Vector<A>(parameters->gradient.data() + p.offset, p.count));
  }

  deck::Model description;
  model::TransformerOptions options;
  model::ParameterTree tree;
  Arena arena;
  ops::Context context;
  std::optional<model::Parameters<T>> parameters;
  std::optional<model::Transformer<T>> transformer;
  ops::Pattern pattern;
  ops::HeadOptions head;
  Vector<std::int32_t> tokens, targets, order;
  Vector<A> weights, losses, balance;
  Matrix<T> logit_rows;
  std::ptrdiff_t scored = 0;
  bool first = true;  // MicroBatch::first

 private:
  /// A harness that is only planned.
  Harness(const deck::Model& m, const model::TransformerOptions& o, const model::ParameterTree& t)
      : description(m), options(o), tree(t) {}

  void request(Arena& from) {
    const std::size_t rows = options.batch * options.tokens;
    context = ops::make_context(from, true, "auto");
    parameters.emplace(tree, model::Purpose::training, from);
    transformer.emplace(description, tree, *parameters, options, from);
    tokens = from.vector<std::int32_t>("tokens", Term::data, rows);
    targets = from.vector<std::int32_t>("targets", Term::data, rows);
    order = from.vector<std::int32_t>("order", Term::data, rows);
    weights = from.vector<A>("weights", Term::data, rows);
    losses = from.vector<A>("losses", Term::data, rows);
    balance =
        from.vector<A>("balance", Term::data, options.training && description.experts > 0 ? 1 : 0);
    logit_rows = from.matrix<T>("all logits", Term::workspace, rows,
                                static_cast<std::size_t>(description.vocabulary));
  }

  Vector<const A> weigh_experts() {
    if (balance.extent(0) == 0) return {};
    return transformer->balance(context, description.router_loss, balance);
  }

  double mean_loss() const {
    double sum = 0;
    for (const double loss : download(losses)) sum += loss;
    return sum / static_cast<double>(scored);
  }
};

}  // namespace tern::test
