// Skip connections, input shortcut, value embeddings and window against a plain PyTorch
// implementation (tests/golden/make_connections.py), through the causal objective.
#include <cmath>

#include "golden/golden.hpp"
#include "objective/harness.hpp"
#include "objective/refinement.hpp"

namespace tern {
namespace {

class ConnectionsGolden : public testing::TestWithParam<const char*> {
 protected:
  test::Golden golden{TERN_SOURCE_DIR "/tests/golden/connections.h5"};
  std::string at = std::string(GetParam()) + "/";

  std::int64_t integer(const std::string& of) const {
    return static_cast<std::int64_t>(golden.number(at + "case/" + of));
  }
  deck::Deck deck() const {
    deck::Deck deck;
    deck::Model& m = deck.model;
    m.layers = integer("layers"), m.hidden = integer("hidden"), m.heads = integer("heads");
    m.kv_heads = integer("kv_heads"), m.head_dim = integer("head_dim");
    m.ffn_hidden = integer("ffn_hidden"), m.vocabulary = integer("vocabulary");
    m.context = integer("positions"), m.norm_eps = golden.number(at + "case/norm_eps");
    m.rope_base = golden.number(at + "case/rope_base");
    m.activation = "relu2", m.qk_norm = true, m.tie_embeddings = false;
    m.skip_connections = integer("skip_connections"), m.input_shortcut = integer("input_shortcut");
    m.value_embeddings = integer("value_embeddings"), m.window = integer("window");
    return deck;
  }
  data::Batch batch() const {
    return test::causal_batch(static_cast<std::size_t>(integer("sequences")),
                              static_cast<std::size_t>(integer("positions")),
                              golden.integers(at + "tokens"), golden.integers(at + "targets"));
  }

  struct Errors {
    double loss, evaluation, gradients, worst = 0;  // relative; of all gradients together
    std::string name;                               // of the worst one
  };

  template <class T>
  Errors errors() const {
    const auto rows = static_cast<std::size_t>(integer("sequences")),
               positions = static_cast<std::size_t>(integer("positions"));
    test::Pass<T> pass(deck(), rows, positions);
    for (const model::Parameter& p : pass.tree.parameters()) {
      EXPECT_EQ(golden.shape(at + "parameters/" + p.name), p.shape) << p.name;
      const std::vector<double> values = golden.numbers(at + "parameters/" + p.name);
      pass.set(p.name, {values.begin(), values.end()});
    }
    pass.parameters->refresh_compute(pass.context);
    const double loss = golden.number(at + "loss");
    Errors errors{std::abs(pass.step(batch()) - loss) / loss,
                  std::abs(pass.evaluate({batch()}).loss - loss) / loss,
                  0,
                  0,
                  {}};
    double difference = 0, size = 0;
    for (const model::Parameter& p : pass.tree.parameters()) {
      const std::vector<double> wanted = golden.numbers(at + "gradients/" + p.name);
      const double distance = test::distance(pass.gradient(p.name), wanted);
      difference += distance * distance, size += std::pow(test::norm(wanted), 2);
      if (distance > errors.worst * test::norm(wanted))
        errors.worst = distance / test::norm(wanted), errors.name = p.name;
    }
    errors.gradients = std::sqrt(difference / size);
    return errors;
  }
};

TEST_P(ConnectionsGolden, DoubleIsTheFloat64Reference) {
  const Errors e = errors<double>();
  EXPECT_LT(e.loss, 1e-12);
  EXPECT_LT(e.evaluation, 1e-12);
  EXPECT_LT(e.worst, 1e-10) << e.name;
}

TEST_P(ConnectionsGolden, FloatMatchesToRounding) {
  const Errors e = errors<float>();
  EXPECT_LT(e.loss, 1e-6);
  EXPECT_LT(e.evaluation, 1e-6);
  EXPECT_LT(e.gradients, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Cases, ConnectionsGolden,
                         testing::Values("all", "odd", "skips", "shortcut", "values", "window"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tern
