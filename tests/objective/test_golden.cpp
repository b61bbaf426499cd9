// The objective against a plain PyTorch implementation (tests/golden/make_block_diffusion.py): the
// same noise, samples packed here and alone in their rows there; loss and all gradients.
#include "golden/golden.hpp"
#include "objective/block_diffusion.hpp"
#include "objective/harness.hpp"

namespace tern {
namespace {

using objective::detail::BlockRows;
using test::Made;

class Case {
 public:
  explicit Case(const std::string& name)
      : golden_(TERN_SOURCE_DIR "/tests/golden/block_diffusion.h5"), name_(name + "/") {}

  std::vector<double> numbers(const std::string& of) const { return golden_.numbers(name_ + of); }
  double number(const std::string& of) const { return golden_.number(name_ + of); }
  std::int64_t integer(const std::string& of) const {
    return static_cast<std::int64_t>(number("case/" + of));
  }
  template <class Integer>
  std::vector<Integer> integers(const std::string& of) const {
    const std::vector<double> values = numbers(of);
    return {values.begin(), values.end()};
  }

  deck::Deck deck() const {
    deck::Deck deck = test::tiny_deck(integer("levels") > 0 ? "hdp" : "flat");
    deck::Model& m = deck.model;
    m.layers = integer("layers"), m.hidden = integer("hidden"), m.heads = integer("heads");
    m.kv_heads = integer("kv_heads"), m.head_dim = integer("head_dim");
    m.ffn_hidden = integer("ffn_hidden"), m.vocabulary = integer("vocabulary");
    m.levels = integer("levels"), m.rope_base = number("case/rope_base");
    m.norm_eps = number("case/norm_eps");
    if (integer("llama") == 0) m.norm = "layernorm", m.activation = "gelu";
    deck.campaign.seed = integer("seed");
    deck.objective.plan_weight = number("case/plan_weight");
    deck.objective.execution_weight = number("case/execution_weight");
    return deck;
  }
  /// The clip intervals as a checkpoint would bring them: one of each level.
  std::map<std::string, double> clip() const {
    const std::vector<double> clip = numbers("case/clip");
    return {{"clip_low_plan", clip[0]},
            {"clip_high_plan", clip[1]},
            {"clip_low_execution", clip[2]},
            {"clip_high_execution", clip[3]}};
  }

  std::vector<Made> samples() const {
    const auto v = integers<std::uint32_t>("case/samples");
    std::vector<Made> samples;
    for (std::size_t s = 0; s < v.size(); s += 6)
      samples.push_back({v[s], v[s + 1], {v[s + 2], v[s + 3]}, {v[s + 4], v[s + 5]}});
    return samples;
  }
  std::size_t rows() const { return static_cast<std::size_t>(integer("rows")); }
  std::size_t positions() const { return static_cast<std::size_t>(integer("positions")); }
  /// A part of a step: other blocks come before it and after it.
  data::Batch batch() const {
    data::Batch batch =
        test::batch_of(samples(), rows(), positions(), integers<std::int32_t>("tokens"),
                       static_cast<std::uint64_t>(integer("first_row")));
    batch.step_number = static_cast<std::uint64_t>(integer("step"));
    const auto before = integers<std::int64_t>("case/before"),
               after = integers<std::int64_t>("case/after");
    for (std::size_t l = 0; l < data::levels; ++l) {
      batch.before.blocks[l] = before[l];
      batch.step.blocks[l] += before[l] + after[l];
    }
    return batch;
  }
  /// Rows (in the batch's positions) of the masked tokens.
  std::vector<std::int32_t> masked() const {
    std::vector<std::size_t> noisy, used(rows(), 0);
    for (const Made& made : samples()) {
      noisy.push_back(made.row * positions() + used[made.row] + made.prefix + made.length[0] +
                      made.length[1]);
      used[made.row] += test::positions_of(made);
    }
    const auto pairs = integers<std::size_t>("masked");
    std::vector<std::int32_t> masked;
    for (std::size_t i = 0; i < pairs.size(); i += 2)
      masked.push_back(static_cast<std::int32_t>(noisy[pairs[i]] + pairs[i + 1]));
    return masked;
  }

 private:
  test::Golden golden_;
  std::string name_;
};

struct Errors {
  double loss = 0, parts = 0, worst_gradient = 0;
  std::string worst;
};

template <class T>
Errors errors_of(const std::string& name) {
  const Case golden(name);
  test::Pass<T> pass(golden.deck(), golden.rows(), golden.positions());
  pass.objective->restore(golden.clip());
  for (const model::Parameter& p : pass.tree.parameters()) {
    const std::vector<double> values = golden.numbers("parameters/" + p.name);
    pass.set(p.name, {values.begin(), values.end()});
  }
  pass.parameters->refresh_compute(pass.context);
  const double loss = golden.number("loss");
  Errors e;
  e.loss = std::abs(pass.step(golden.batch()) - loss) / loss;
  const std::vector<double> parts = golden.numbers("parts");
  for (std::size_t l = 0; l < pass.parts.size(); ++l)
    e.parts = std::max(e.parts, std::abs(pass.parts[l] - parts[l]) / parts[l]);
  for (const model::Parameter& p : pass.tree.parameters()) {
    const double error =
        test::relative_error(pass.gradient(p.name), golden.numbers("gradients/" + p.name));
    if (!(error <= e.worst_gradient)) e.worst_gradient = error, e.worst = p.name;
  }
  std::printf("%s %s: relative error of loss %.1e, levels' losses %.1e, worst gradient %.1e (%s)\n",
              name.c_str(), type_name<T>(), e.loss, e.parts, e.worst_gradient, e.worst.c_str());
  return e;
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, NoiseIsTheSame) {
  const Case golden(GetParam());
  const auto clip = golden.clip();
  objective::detail::Noise noise{static_cast<std::uint64_t>(golden.integer("seed")), false, {}};
  noise.clip = {{{clip.at("clip_low_plan"), clip.at("clip_high_plan")},
                 {clip.at("clip_low_execution"), clip.at("clip_high_execution")}}};
  BlockRows rows(golden.rows(), golden.positions(),
                 static_cast<std::int32_t>(golden.integer("vocabulary")) - 1);
  rows.fill(golden.batch(), noise);
  std::vector<double> times;
  for (const auto& block : rows.blocks()) times.push_back(block.t);
  EXPECT_LT(test::distance(times, golden.numbers("times")), 1e-14);
  EXPECT_EQ(rows.masked(), golden.masked());
}

TEST_P(Golden, DoubleIsTheFloat64Reference) {
  const Errors e = errors_of<double>(GetParam());
  EXPECT_LT(e.loss, 1e-12);
  EXPECT_LT(e.parts, 1e-12);
  EXPECT_LT(e.worst_gradient, 1e-12) << e.worst;
}

TEST_P(Golden, FloatMatchesToRounding) {
  const Errors e = errors_of<float>(GetParam());
  EXPECT_LT(e.loss, 1e-5);
  EXPECT_LT(e.parts, 1e-5);
  EXPECT_LT(e.worst_gradient, 1e-5) << e.worst;
}

INSTANTIATE_TEST_SUITE_P(BlockDiffusion, Golden,
                         testing::Values("bd3lm", "bd3lm_question", "hdp", "hdp_late_clip"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tern
