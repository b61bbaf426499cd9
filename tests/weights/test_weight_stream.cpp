// Weights from files to the device: whole and divided parameters, directly and through buffers.
#include "weights/weight_stream.hpp"

#include <atomic>

#include "base/error.hpp"
#include "model/harness.hpp"

namespace tern::weights {
namespace {

using model::Parameter;
using transformers::Part;

/// A value that bfloat16 represents, by position in the whole parameter.
float value_of(const Parameter& p, std::size_t row, std::size_t column) {
  return static_cast<float>((p.place * 31 + row * 7 + column) % 255);
}

template <class V>
ReadPart<V> reader() {
  return [](const Parameter& p, const Part& part, V* to) {
    for (std::size_t r = 0; r < part.rows; ++r)
      for (std::size_t c = 0; c < part.columns; ++c)
        to[r * part.columns + c] = V(value_of(p, part.row + r, part.column + c));
  };
}

/// A tree of which some parameters are this rank's parts.
model::ParameterTree divided() {
  model::ParameterTree tree(model::declare(test::gpt2_like()));
  const auto make_part = [&](const std::string& name, std::vector<std::size_t> first,
                             std::vector<std::size_t> shape) {
    auto& p = const_cast<Parameter&>(tree.at(name));
    p.first = std::move(first), p.shape = std::move(shape), p.count = 1;
    for (const std::size_t extent : p.shape) p.count *= extent;
  };
  make_part("model/layers/0/mlp/down_proj/weight", {0, 10}, {24, 10});
  make_part("model/layers/1/mlp/up_proj/weight", {10, 0}, {10, 24});
  make_part("model/layers/1/mlp/up_proj/bias", {10}, {10});
  return tree;
}

/// Each parameter in two holdings, split within a row.
std::vector<Holding> two_parts(const std::vector<const Parameter*>& order) {
  std::vector<Holding> held;
  for (const Parameter* p : order) {
    const std::size_t cut = p->count * 2 / 5;
    held.push_back({{{cut, p->count - cut}, p->offset + cut}, p});
    held.push_back({{{0, cut}, p->offset}, p});
  }
  return held;
}

template <class V>
void expect_filled(const model::ParameterTree& tree, const StreamOptions& options) {
  std::vector<const Parameter*> order;
  for (const Parameter& p : tree.parameters()) order.insert(order.begin(), &p);
  Arena arena(tree.span() * sizeof(V) + (1 << 20));
  const ops::Context context = ops::make_context(arena, false, "auto");
  const Vector<V> span = arena.vector<V>("span", Term::parameters, tree.span());
  Kokkos::deep_copy(span, V(-3));
  Log log(false);
  const auto transfer = stream_in<V>(context, two_parts(order), span, reader<V>(), log, options);
  std::size_t elements = 0;
  const std::vector<double> got = test::download(span);
  for (const Parameter& p : tree.parameters()) {
    const std::size_t columns = p.shape.back();
    const std::size_t row = p.shape.size() > 1 ? p.first[0] : 0;
    for (std::size_t i = 0; i < p.count; ++i)
      ASSERT_EQ(got[p.offset + i], value_of(p, row + i / columns, p.first.back() + i % columns))
          << p.name << " " << i;
    if (p.shape != p.whole) {
      EXPECT_EQ(got[p.offset + p.count], -3) << "written beyond " << p.name;
    }
    elements += p.count;
  }
  EXPECT_EQ(transfer.bytes, static_cast<double>(elements * sizeof(V)));
}

TEST(WeightStream, FillsWholeAndDividedParameters) {
  const model::ParameterTree whole(model::declare(test::qwen3_like())), parts = divided();
  for (const model::ParameterTree* tree : {&whole, &parts})
    for (const bool staged : {true, StreamOptions().staged})
      for (const std::size_t bytes : {std::size_t{40}, std::size_t{200}, std::size_t{1} << 20})
        for (const std::size_t threads : {1, 4}) {
          expect_filled<float>(*tree, {threads, bytes, staged});
          expect_filled<bf16>(*tree, {threads, bytes, staged});
        }
}

TEST(WeightStream, EndsWithTheErrorOfAThread) {
  const model::ParameterTree tree(model::declare(test::qwen3_like()));
  std::vector<const Parameter*> order;
  for (const Parameter& p : tree.parameters()) order.push_back(&p);
  Arena arena(tree.span() * sizeof(float) + (1 << 20));
  const ops::Context context = ops::make_context(arena, false, "auto");
  const Vector<float> span = arena.vector<float>("span", Term::parameters, tree.span());
  Log log(false);
  for (const bool staged : {true, StreamOptions().staged}) {
    std::atomic<int> calls{0};
    const ReadPart<float> fails = [&](const Parameter& p, const Part&, float*) {
      if (++calls == 20) user_error("no more of {}", p.name);
    };
    EXPECT_THROW(stream_in<float>(context, two_parts(order), span, fails, log, {4, 64, staged}),
                 UserError);
  }
}

}  // namespace
}  // namespace tern::weights
