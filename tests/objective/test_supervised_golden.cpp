// Supervised training against Hugging Face Transformers: loss and all gradients of a tiny Qwen3 on
// packed conversations (tests/golden/make_supervised.py, which has each of them in a row alone).
#include "data/chat_source.hpp"
#include "golden/golden.hpp"
#include "objective/conversations.hpp"
#include "objective/harness.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

const std::string folder = std::string(TERN_SOURCE_DIR) + "/tests/golden/";
constexpr std::size_t positions = 32;

std::vector<text::ChatTokens> chats_of(const test::Golden& golden) {
  const std::vector<double> tokens = golden.numbers("tokens"), learned = golden.numbers("learned");
  std::vector<text::ChatTokens> chats;
  std::size_t at = 0;
  for (const double length : golden.numbers("lengths")) {
    text::ChatTokens& chat = chats.emplace_back();
    for (const std::size_t end = at + static_cast<std::size_t>(length); at < end; ++at) {
      chat.tokens.push_back(static_cast<std::int32_t>(tokens[at]));
      chat.learned.push_back(learned[at] != 0 ? 1 : 0);
      chat.roles.push_back(learned[at] != 0 ? text::Role::assistant : text::Role::user);
    }
  }
  return chats;
}

struct Errors {
  double loss, worst_gradient = 0;
  std::string worst;
};

template <class T>
Errors errors() {
  const test::Golden golden(folder + "supervised.h5");
  const transformers::TransformersReader reader(folder + "qwen3");
  const data::ChatSource source(chats_of(golden), {positions, true, false, 1});
  deck::Deck deck;
  deck.model = reader.model();
  deck.model.context = positions;
  deck.objective.kind = "supervised";
  test::Pass<T> pass(deck, source.rows(), positions);
  for (const model::Parameter& p : pass.tree.parameters())
    pass.set(p.name, reader.read(p.name, p.shape));
  pass.parameters->refresh_compute(pass.context);
  const double loss = golden.number("loss");
  Errors e;
  e.loss = std::abs(pass.step(test::batch_of(source, 0, source.rows())) - loss) / loss;
  for (const model::Parameter& p : pass.tree.parameters()) {
    const double error =
        test::relative_error(pass.gradient(p.name), golden.numbers("gradients/" + p.name));
    if (!(error <= e.worst_gradient)) e.worst_gradient = error, e.worst = p.name;
  }
  std::printf("%s, %zu rows: relative error of loss %.1e, worst gradient %.1e (%s)\n",
              type_name<T>(), source.rows(), e.loss, e.worst_gradient, e.worst.c_str());
  return e;
}

TEST(SupervisedGolden, DoubleIsTheFloat64Reference) {
  const Errors e = errors<double>();
  EXPECT_LT(e.loss, 1e-10);
  EXPECT_LT(e.worst_gradient, 1e-10) << e.worst;
}

TEST(SupervisedGolden, FloatMatchesToRounding) {
  const Errors e = errors<float>();
  EXPECT_LT(e.loss, 1e-5);
  EXPECT_LT(e.worst_gradient, 1e-5) << e.worst;
}

}  // namespace
}  // namespace tern
