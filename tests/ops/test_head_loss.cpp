// The head and its cross entropy, in chunks of rows.
#include <numeric>

#include "ops/check.hpp"

namespace tern::test {
namespace {

struct HeadCase {
  std::size_t n, d, v, chunk;
  std::size_t vocabulary = 0;
  double z_loss = 0;

  std::size_t used() const { return vocabulary > 0 ? vocabulary : v; }

  Named inputs() const {
    Named in{{"x", normal_numbers(n * d, 1)},
             {"w", normal_numbers(v * d, 2)},
             {"weights", normal_numbers(n, 3)},
             {"dw0", normal_numbers(v * d, 4)},
             {"targets", Numbers(n)}};
    for (std::size_t i = 0; i < n; ++i)
      in["targets"][i] = i % 5 == 2 ? -1.0 - double(i) : double(i * 7 % used());
    return in;
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const Array<T> x(n, d, in.at("x")), w(v, d, in.at("w")), logits(chunk, v), dx(n, d);
    const Array<std::int32_t> targets(in.at("targets"));
    const Array<A> weights(in.at("weights")), losses(1, n), alone(1, n), dw(v, d, in.at("dw0"));
    const ops::HeadOptions options{z_loss, vocabulary};
    ops::head_loss_forward<T>(context, options, x.matrix(), w.matrix(), targets.vector(),
                              logits.matrix(), alone.vector());
    ops::head_loss_backward<T>(context, options, x.matrix(), w.matrix(), targets.vector(),
                               weights.vector(), logits.matrix(), losses.vector(), dx.matrix(),
                               dw.matrix());
    EXPECT_TRUE(same(alone.get(), losses.get()));
    return {{"losses", losses.get()}, {"dx", dx.get()}, {"dw", dw.get()}};
  }

  /// `store` rounds as the storage of the logits does.
  template <class A, class Store>
  Named compute(const Named& in, const Store& store) const {
    Named out{{"losses", Numbers(n)}, {"dx", Numbers(n * d)}, {"dw", in.at("dw0")}};
    std::vector<A> row(v);
    for (std::size_t r = 0; r < n; ++r) {
      const long double target = in.at("targets")[r];
      if (target < 0) continue;
      A largest = -std::numeric_limits<A>::infinity(), sum = 0;
      for (std::size_t c = 0; c < used(); ++c) {
        row[c] = 0;
        for (std::size_t k = 0; k < d; ++k)
          row[c] += A(in.at("x")[r * d + k]) * A(in.at("w")[c * d + k]);
        row[c] = store(row[c]);
        largest = std::max(largest, row[c]);
      }
      for (std::size_t c = 0; c < used(); ++c) sum += std::exp(row[c] - largest);
      const A lse = largest + std::log(sum), weight = in.at("weights")[r];
      out["losses"][r] = lse - row[std::size_t(target)] + A(z_loss) * lse * lse;
      for (std::size_t c = 0; c < used(); ++c) {
        const A p = std::exp(row[c] - lse);
        const A one = c == std::size_t(target) ? 1 : 0;
        const A g = store(weight * (p * (1 + 2 * A(z_loss) * lse) - one));
        for (std::size_t k = 0; k < d; ++k) {
          long double &dx = out["dx"][r * d + k], &dw = out["dw"][c * d + k];
          dx = A(dx) + g * A(in.at("w")[c * d + k]);
          dw = A(dw) + g * A(in.at("x")[r * d + k]);
        }
      }
    }
    return out;
  }
  template <class A>
  Named reference(const Named& in) const {
    return compute<A>(in, [](A value) { return value; });
  }
};

/// The same with logits and their gradients rounded to bf16 in the same-precision reference.
struct Bf16HeadCase : HeadCase {
  template <class A>
  Named reference(const Named& in) const {
    if constexpr (std::is_same_v<A, long double>)
      return HeadCase::reference<A>(in);
    else
      return compute<A>(in, [](A value) { return A(bf16(value)); });
  }
};

const HeadCase cases[] = {
    {23, 11, 37, 8}, {23, 11, 37, 23, 31},        {23, 11, 37, 5, 31, 1e-2},
    {1, 3, 2, 64},   {16, 8, 300, 16, 257, 1e-3},
};
const std::set<std::string> stored{"dx"}, exact{"weights", "dw0", "targets"};

TEST(HeadLoss, PrecisionAndRepetition) {
  for (const HeadCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.n << " x " << c.d << " -> " << c.v);
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(Bf16HeadCase{c}, c.inputs(), stored, exact);
  }
}

TEST(HeadLoss, Gradients) {
  for (const HeadCase& c : {cases[0], cases[1], cases[2]}) {
    const Named in = c.inputs();
    check_gradients(c, in, "losses", "weights", {{"x", "dx"}, {"w", "dw"}}, {{"dw", in.at("dw0")}});
  }
}

TEST(HeadLoss, ChunksDoNotChangeLosses) {
  HeadCase c{23, 11, 37, 23};
  const Named whole = c.run<double>(c.inputs());
  for (c.chunk = 1; c.chunk < 9; ++c.chunk) {
    const Named parts = c.run<double>(c.inputs());
    EXPECT_LE(relative_error(parts.at("losses"), whole.at("losses")), 1e-14);
    EXPECT_LE(relative_error(parts.at("dw"), whole.at("dw")), 1e-14);
  }
}

TEST(HeadLoss, PaddingAndIgnoredRowsGetNothing) {
  const HeadCase c{10, 4, 9, 4, 7, 1e-2};
  Named in = c.inputs();
  in["targets"].assign(10, -100);
  in["targets"][3] = 2;
  const Named out = c.run<float>(in);
  const Numbers before = rounded<float>(in.at("dw0"));
  for (std::size_t r = 0; r < 10; ++r) {
    EXPECT_EQ(out.at("losses")[r] == 0, r != 3);
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(out.at("dx")[r * 4 + k] == 0, r != 3);
  }
  for (std::size_t i = 7 * 4; i < 9 * 4; ++i) EXPECT_EQ(out.at("dw")[i], before[i]);
}

TEST(HeadLoss, LargeLogitsAndWrongTargets) {
  const HeadCase c{3, 1, 4, 3, 3};
  const Named in{{"x", {1, 1, 1}},
                 {"w", {3e4, 1e4, -3e4, 9e4}},
                 {"weights", {1, 1, 1}},
                 {"dw0", {0, 0, 0, 0}},
                 {"targets", {0, 1, 3}}};
  const Numbers losses = c.run<float>(in).at("losses");
  EXPECT_EQ(losses[0], 0);
  EXPECT_EQ(losses[1], 2e4);
  EXPECT_TRUE(std::isnan(losses[2]));  // column 3 is padding
}

}  // namespace
}  // namespace tern::test
