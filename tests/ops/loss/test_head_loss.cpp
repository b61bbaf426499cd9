// The LM head and its cross entropy, in chunks of rows.
#include <numeric>

#include "ops/check.hpp"

namespace tern::test {
namespace {

struct HeadCase {
  std::size_t n, d, v, chunk;
  std::size_t vocabulary = 0;
  double z_loss = 0, cap = 0;

  ops::HeadOptions options() const { return {z_loss, vocabulary, cap}; }
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
    ops::run(context, ops::HeadLossForward<T>{.options = options(),
                                              .x = x.matrix(),
                                              .w = w.matrix(),
                                              .targets = targets.vector(),
                                              .logits = logits.matrix(),
                                              .losses = alone.vector()});
    ops::run(context, ops::HeadLossBackward<T>{.options = options(),
                                               .x = x.matrix(),
                                               .w = w.matrix(),
                                               .targets = targets.vector(),
                                               .weights = weights.vector(),
                                               .logits = logits.matrix(),
                                               .losses = losses.vector(),
                                               .dx = dx.matrix(),
                                               .dw = dw.matrix()});
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
        if (cap > 0) row[c] = store(A(cap) * std::tanh(row[c] / A(cap)));
        largest = std::max(largest, row[c]);
      }
      for (std::size_t c = 0; c < used(); ++c) sum += std::exp(row[c] - largest);
      const A lse = largest + std::log(sum), weight = in.at("weights")[r];
      out["losses"][r] = lse - row[std::size_t(target)] + A(z_loss) * lse * lse;
      for (std::size_t c = 0; c < used(); ++c) {
        const A p = std::exp(row[c] - lse);
        const A one = c == std::size_t(target) ? 1 : 0;
        const A slope = cap > 0 ? 1 - row[c] * row[c] / (A(cap) * A(cap)) : 1;
        const A g = store(weight * (p * (1 + 2 * A(z_loss) * lse) - one) * slope);
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

/// The same with logits and their gradients rounded to T in the same-precision reference.
template <class T>
struct StoredHeadCase : HeadCase {
  template <class A>
  Named reference(const Named& in) const {
    if constexpr (std::is_same_v<A, long double>)
      return HeadCase::reference<A>(in);
    else
      return compute<A>(in, [](A value) { return A(T(value)); });
  }
};

const HeadCase cases[] = {
    {23, 11, 37, 8}, {23, 11, 37, 23, 31},        {23, 11, 37, 5, 31, 1e-2},
    {1, 3, 2, 64},   {16, 8, 300, 16, 257, 1e-3},
};
const HeadCase capped[] = {
    {23, 11, 37, 8, 0, 0, 5},
    {23, 11, 37, 5, 31, 1e-2, 2},
    {16, 8, 300, 16, 257, 0, 15},
    {16, 8, 51, 4, 0, 1e-3, 0.5},  // at the cap, mostly
};
const std::set<std::string> stored{"dx"}, exact{"weights", "dw0", "targets"};

void check_precisions(const HeadCase& c) {
  SCOPED_TRACE(testing::Message() << c.n << " x " << c.d << " -> " << c.v << ", cap " << c.cap);
  check_precision<double>(c, c.inputs(), stored, exact);
  check_precision<float>(c, c.inputs(), stored, exact);
  check_precision<bf16>(StoredHeadCase<bf16>{c}, c.inputs(), stored, exact);
  check_precision<fp16>(StoredHeadCase<fp16>{c}, c.inputs(), stored, exact);
}

TEST(HeadLoss, PrecisionAndRepetition) {
  for (const HeadCase& c : cases) check_precisions(c);
  for (const HeadCase& c : capped) check_precisions(c);
}

TEST(HeadLoss, Gradients) {
  for (const HeadCase& c : {cases[0], cases[1], cases[2], capped[0], capped[1], capped[2]}) {
    SCOPED_TRACE(testing::Message() << c.v << ", cap " << c.cap);
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

void check_padding_and_ignored_rows(const HeadCase& c) {
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

TEST(HeadLoss, PaddingAndIgnoredRowsGetNothing) {
  check_padding_and_ignored_rows({10, 4, 9, 4, 7, 1e-2});
  check_padding_and_ignored_rows({10, 4, 9, 4, 7, 1e-2, 3});
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

// Far beyond the cap: losses of equal logits, and zero slope.
TEST(HeadLoss, LogitsStayBelowTheCap) {
  const HeadCase c{3, 1, 3, 2, 0, 0, 8};
  const Named out = c.run<float>({{"x", {1, 1, 1}},
                                  {"w", {3e4, 1e4, -3e4}},
                                  {"weights", {1, 1, 1}},
                                  {"dw0", {5, 6, 7}},
                                  {"targets", {0, 2, 1}}});
  const double lse = 8 + std::log(2 + std::exp(-16));
  EXPECT_NEAR(out.at("losses")[0], lse - 8, 1e-6);
  EXPECT_NEAR(out.at("losses")[1], lse + 8, 1e-5);
  EXPECT_EQ(out.at("losses")[2], out.at("losses")[0]);
  EXPECT_EQ(out.at("dx"), (Numbers{0, 0, 0}));
  EXPECT_EQ(out.at("dw"), (Numbers{5, 6, 7}));
}

struct CapCase {
  std::size_t rows, columns;
  double cap;

  Named inputs() const { return {{"logits0", normal_numbers(rows * columns, 1, 6)}}; }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> logits(rows, columns, in.at("logits0"));
    ops::run(portable_context(), ops::CapLogits<T>{.cap = cap, .logits = logits.matrix()});
    return {{"logits", logits.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"logits", in.at("logits0")}};
    for (long double& v : out["logits"]) v = A(cap) * std::tanh(A(v) / A(cap));
    return out;
  }
};

TEST(CapLogits, PrecisionAndRepetition) {
  for (const CapCase& c : {CapCase{33, 101, 15}, CapCase{1, 1, 2}, CapCase{3, 2049, 0.7}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.columns << ", cap " << c.cap);
    check_precision<double>(c, c.inputs(), {"logits"});
    check_precision<float>(c, c.inputs(), {"logits"});
    check_precision<bf16>(c, c.inputs(), {"logits"});
    check_precision<fp16>(c, c.inputs(), {"logits"});
  }
  const CapCase none{3, 7, 0};
  const Numbers values = rounded<float>(none.inputs().at("logits0"));
  EXPECT_EQ(none.run<float>(none.inputs()).at("logits"), values);
}

/// Losses do not depend on whether the argmax is requested; ignored rows also have one.
TEST(HeadLoss, ReturnsTheArgmax) {
  for (const HeadCase& c : {cases[0], cases[1], cases[2], cases[3], cases[4], capped[1]}) {
    const Named in = c.inputs();
    const auto& context = portable_context();
    const Array<double> x(c.n, c.d, in.at("x")), w(c.v, c.d, in.at("w")), logits(c.chunk, c.v),
        plain(1, c.n), losses(1, c.n);
    const Array<std::int32_t> targets(in.at("targets")), best(1, c.n);
    ops::run(context, ops::HeadLossForward<double>{.options = c.options(),
                                                   .x = x.matrix(),
                                                   .w = w.matrix(),
                                                   .targets = targets.vector(),
                                                   .logits = logits.matrix(),
                                                   .losses = plain.vector()});
    ops::run(context, ops::HeadLossForward<double>{.options = c.options(),
                                                   .x = x.matrix(),
                                                   .w = w.matrix(),
                                                   .targets = targets.vector(),
                                                   .logits = logits.matrix(),
                                                   .losses = losses.vector(),
                                                   .best = best.vector()});
    EXPECT_EQ(plain.get(), losses.get());
    Numbers expected(c.n);
    for (std::size_t r = 0; r < c.n; ++r) {
      Numbers row(c.used(), 0);
      for (std::size_t v = 0; v < c.used(); ++v)
        for (std::size_t k = 0; k < c.d; ++k)
          row[v] += in.at("x")[r * c.d + k] * in.at("w")[v * c.d + k];
      expected[r] =
          static_cast<long double>(std::max_element(row.begin(), row.end()) - row.begin());
    }
    EXPECT_EQ(best.get(), expected);
  }
}

template <class T>
void check_argmax() {
  const auto best_of = [](std::size_t rows, std::size_t columns, const Numbers& values,
                          std::size_t vocabulary) {
    const Array<T> logits(rows, columns, values);
    const Array<std::int32_t> best(1, rows);
    ops::run(portable_context(),
             ops::ArgmaxRows<T>{
                 .logits = logits.matrix(), .vocabulary = vocabulary, .best = best.vector()});
    return best.get();
  };
  EXPECT_EQ(best_of(4, 4, {1, 3, 3, 9, -5, -4, -4, 9, 0, 0, 0, 0, 2, 1, 0, 9}, 3),
            (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(best_of(1, 1, {-7}, 1), Numbers{0});
  const std::size_t rows = 33, columns = 1001, used = 990;
  const Numbers values = rounded<T>(normal_numbers(rows * columns, 5));
  Numbers expected;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(r * columns);
    expected.push_back(static_cast<long double>(std::max_element(first, first + used) - first));
  }
  EXPECT_EQ(best_of(rows, columns, values, used), expected);  // in bf16 with many ties
}

TEST(ArgmaxRows, IsTheLowestOfTheLargest) {
  check_argmax<double>();
  check_argmax<float>();
  check_argmax<bf16>();
  check_argmax<fp16>();
}

template <class T>
void check_scatter() {
  const std::size_t d = 19;
  for (const Numbers& rows :
       {Numbers{}, Numbers{3}, Numbers{0, 2, 6}, Numbers{5, 1, 0, 6, 2, 4, 3}}) {
    const Numbers values = rounded<T>(normal_numbers(rows.size() * d, 2));
    const Array<std::int32_t> where(rows);
    const Array<T> from(rows.size(), d, values), to(7, d);  // NaN before
    ops::run(portable_context(),
             ops::ScatterRows<T>{.rows = where.vector(), .from = from.matrix(), .to = to.matrix()});
    Numbers expected(7 * d, 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[std::size_t(rows[i / d]) * d + i % d] = values[i];
    EXPECT_EQ(to.get(), expected) << rows.size();
  }
}

template <class T>
void check_gather() {
  const std::size_t d = 19, most = 5;
  for (const Numbers& rows : {Numbers{}, Numbers{3}, Numbers{0, 2, 6}, Numbers{6, 0, 2, 2, 1}}) {
    const Numbers values = rounded<T>(normal_numbers(7 * d, 2));
    const Array<std::int32_t> where(rows);
    const Array<T> from(7, d, values), to(most, d);  // NaN before
    ops::run(portable_context(),
             ops::GatherRows<T>{.rows = where.vector(), .from = from.matrix(), .to = to.matrix()});
    Numbers expected(most * d, 0);
    for (std::size_t i = 0; i < rows.size() * d; ++i)
      expected[i] = values[std::size_t(rows[i / d]) * d + i % d];
    EXPECT_EQ(to.get(), expected) << rows.size();
  }
}

TEST(GatherRows, FillsTheRestWithZeros) {
  check_gather<double>();
  check_gather<float>();
  check_gather<bf16>();
  check_gather<fp16>();
}

TEST(ScatterRows, FillsTheRestWithZeros) {
  check_scatter<double>();
  check_scatter<float>();
  check_scatter<bf16>();
  check_scatter<fp16>();
}

}  // namespace
}  // namespace tern::test
