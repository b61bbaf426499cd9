// Embedding of tokens, with and without learned positions.
#include <algorithm>
#include <numeric>

#include "ops/check.hpp"

namespace tern::test {
namespace {

struct EmbeddingCase {
  std::size_t batch, tokens, d, v;
  bool learned;
  int first = 0;

  std::size_t n() const { return batch * tokens; }
  std::size_t context() const { return learned ? tokens + static_cast<std::size_t>(first) : 0; }

  Named inputs() const {
    Named in{{"tokens", Numbers(n())},
             {"table", normal_numbers(v * d, 1)},
             {"positions", normal_numbers(context() * d, 2)},
             {"dx", normal_numbers(n() * d, 3)},
             {"dtable0", normal_numbers(v * d, 4)},
             {"dpositions0", normal_numbers(context() * d, 5)}};
    // Half of the rows hold the same token, as in text.
    for (std::size_t i = 0; i < n(); ++i)
      in["tokens"][i] =
          i % 2 ? 1 : double(philox(9, Stream::test, 0, 0, std::uint32_t(i)).word[0] % v);
    return in;
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    Numbers order(n());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](long double a, long double b) {
      return in.at("tokens")[std::size_t(a)] < in.at("tokens")[std::size_t(b)];
    });
    const Array<std::int32_t> token(in.at("tokens")), sorted(order);
    const Array<T> table(v, d, in.at("table")), positions(this->context(), d, in.at("positions")),
        dx(n(), d, in.at("dx")), x(n(), d);
    const Array<A> dtable(v, d, in.at("dtable0")),
        dpositions(this->context(), d, in.at("dpositions0"));
    ops::run(context, ops::EmbeddingForward<T>{.tokens = token.vector(),
                                               .table = table.matrix(),
                                               .positions = positions.matrix(),
                                               .tokens_per_sequence = tokens,
                                               .first = first,
                                               .x = x.matrix()});
    ops::run(context, ops::EmbeddingBackward<T>{.tokens = token.vector(),
                                                .order = sorted.vector(),
                                                .dx = dx.matrix(),
                                                .tokens_per_sequence = tokens,
                                                .dtable = dtable.matrix(),
                                                .dpositions = dpositions.matrix()});
    return {{"x", x.get()}, {"dtable", dtable.get()}, {"dpositions", dpositions.get()}};
  }

  template <class A>
  Named reference(const Named& in) const {
    Named out{{"x", Numbers(n() * d)},
              {"dtable", in.at("dtable0")},
              {"dpositions", in.at("dpositions0")}};
    for (std::size_t r = 0; r < n(); ++r)
      for (std::size_t c = 0; c < d; ++c) {
        const auto token = static_cast<std::size_t>(in.at("tokens")[r]);
        const std::size_t position = r % tokens;
        A x = A(in.at("table")[token * d + c]);
        if (learned) x += A(in.at("positions")[(position + std::size_t(first)) * d + c]);
        out["x"][r * d + c] = x;
        long double& to = out["dtable"][token * d + c];
        to = A(to) + A(in.at("dx")[r * d + c]);
        if (learned) {
          long double& at = out["dpositions"][position * d + c];
          at = A(at) + A(in.at("dx")[r * d + c]);
        }
      }
    return out;
  }
};

const EmbeddingCase cases[] = {
    {3, 7, 5, 11, false}, {3, 7, 5, 11, true},   {2, 33, 130, 4, true},
    {1, 1, 64, 2, false}, {4, 100, 67, 9, true},
};
const std::set<std::string> stored{"x"}, exact{"tokens", "dtable0", "dpositions0"};

TEST(Embedding, PrecisionAndRepetition) {
  for (const EmbeddingCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.batch << " x " << c.tokens << " x " << c.d);
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
    check_precision<fp16>(c, c.inputs(), stored, exact);
  }
}

TEST(Embedding, Gradients) {
  for (const EmbeddingCase& c : {cases[0], cases[1]}) {
    const Named in = c.inputs();
    std::vector<std::pair<std::string, std::string>> pairs{{"table", "dtable"}};
    if (c.learned) pairs.push_back({"positions", "dpositions"});
    check_gradients(c, in, "x", "dx", pairs,
                    {{"dtable", in.at("dtable0")}, {"dpositions", in.at("dpositions0")}});
  }
}

struct EmbeddingAddCase {
  std::size_t n, d, r;

  Named inputs() const {
    Named in{{"rows", Numbers(n)},
             {"table", normal_numbers(r * d, 1)},
             {"x0", normal_numbers(n * d, 2)}};
    for (std::size_t i = 0; i < n; ++i)
      in["rows"][i] = double(philox(3, Stream::test, 0, 0, std::uint32_t(i)).word[0] % r);
    return in;
  }
  template <class T>
  Named run(const Named& in) const {
    const Array<std::int32_t> rows(in.at("rows"));
    const Array<T> table(r, d, in.at("table")), x(n, d, in.at("x0"));
    ops::run(portable_context(),
             ops::EmbeddingAdd<T>{.rows = rows.vector(), .table = table.matrix(), .x = x.matrix()});
    return {{"x", x.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"x", in.at("x0")}};
    for (std::size_t i = 0; i < n * d; ++i)
      out["x"][i] =
          A(out["x"][i]) + A(in.at("table")[std::size_t(in.at("rows")[i / d]) * d + i % d]);
    return out;
  }
};

TEST(EmbeddingAdd, PrecisionAndRepetition) {
  for (const EmbeddingAddCase& c :
       {EmbeddingAddCase{1, 1, 1}, {24, 16, 3}, {37, 33, 3}, {130, 100, 7}}) {
    SCOPED_TRACE(testing::Message() << c.n << " x " << c.d << " of " << c.r);
    check_precision<double>(c, c.inputs(), {"x"}, {"rows"});
    check_precision<float>(c, c.inputs(), {"x"}, {"rows"});
    check_precision<bf16>(c, c.inputs(), {"x"}, {"rows"});
    check_precision<fp16>(c, c.inputs(), {"x"}, {"rows"});
  }
}

// In generation the rows are later in their sequences.
TEST(Embedding, LaterPositions) {
  const EmbeddingCase c{2, 3, 4, 5, true, 6};
  const Named in = c.inputs();
  EXPECT_EQ(c.run<double>(in).at("x"), c.reference<double>(in).at("x"));
}

}  // namespace
}  // namespace tern::test
