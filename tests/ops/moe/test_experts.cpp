// Routing, grouped products and the operations between them.
#include "ops/check.hpp"
#include "ops/ops.hpp"

namespace tern::test {
namespace {

using Index = std::int32_t;

Matrix<const Index> constant(const Matrix<Index>& m) { return m; }

// ---- routing

struct RouteCase {
  std::size_t n, x, k;
  bool renormalize;

  Named inputs() const {
    return {{"logits", normal_numbers(n * x, 1, 2)}, {"cotangent", normal_numbers(n * (k + x), 2)}};
  }
  /// The cotangent of each token: for its k weights, then for its x probabilities; those of the
  /// probabilities are the first token's for all.
  Numbers balance(const Named& in) const {
    const auto first = in.at("cotangent").begin() + static_cast<std::ptrdiff_t>(k);
    return Numbers(first, first + static_cast<std::ptrdiff_t>(x));
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const Array<T> logits(n, x, in.at("logits")), dlogits(n, x);
    const Array<A> p(n, x), w(n, k), even(balance(in));
    const Array<Index> e(n, k, Numbers(n * k));
    Numbers cotangent;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < k; ++j) cotangent.push_back(in.at("cotangent")[i * (k + x) + j]);
    const Array<A> dw(n, k, cotangent);
    ops::run(context, ops::Route<T>{.renormalize = renormalize,
                                    .logits = logits.matrix(),
                                    .probabilities = p.matrix(),
                                    .weights = w.matrix(),
                                    .experts = e.matrix()});
    ops::run(context, ops::RouteBackward<T>{.renormalize = renormalize,
                                            .probabilities = p.matrix(),
                                            .experts = constant(e.matrix()),
                                            .weights = w.matrix(),
                                            .dweights = dw.matrix(),
                                            .balance = even.vector(),
                                            .dlogits = dlogits.matrix()});
    Numbers both;
    const Numbers weights = w.get(), probabilities = p.get();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < k; ++j) both.push_back(weights[i * k + j]);
      for (std::size_t j = 0; j < x; ++j) both.push_back(probabilities[i * x + j]);
    }
    return {{"both", both}, {"experts", e.get()}, {"dlogits", dlogits.get()}};
  }

  template <class A>
  Named reference(const Named& in) const {
    Named out{{"both", {}}, {"experts", {}}, {"dlogits", {}}};
    const Numbers even = balance(in);
    for (std::size_t i = 0; i < n; ++i) {
      const auto* logit = &in.at("logits")[i * x];
      const A top = A(*std::max_element(logit, logit + x));
      std::vector<A> p(x), w(k), dp(even.begin(), even.end());
      A total = 0, sum = 0, inner = 0, center = 0;
      for (std::size_t j = 0; j < x; ++j) total += p[j] = std::exp(A(logit[j]) - top);
      for (A& value : p) value /= total;
      std::vector<std::size_t> order(x);
      for (std::size_t j = 0; j < x; ++j) order[j] = j;
      std::stable_sort(order.begin(), order.end(),
                       [&](auto a, auto b) { return logit[a] > logit[b]; });
      for (std::size_t j = 0; j < k; ++j) sum += w[j] = p[order[j]];
      if (!renormalize) sum = 1;
      const auto dw = [&](std::size_t j) { return A(in.at("cotangent")[i * (k + x) + j]); };
      for (std::size_t j = 0; j < k; ++j) {
        w[j] /= sum;
        if (renormalize) inner += w[j] * dw(j);
      }
      for (std::size_t j = 0; j < k; ++j) dp[order[j]] += (dw(j) - inner) / sum;
      for (std::size_t j = 0; j < x; ++j) center += p[j] * dp[j];
      for (std::size_t j = 0; j < k; ++j) out["experts"].push_back(order[j]);
      out["both"].insert(out["both"].end(), w.begin(), w.end());
      out["both"].insert(out["both"].end(), p.begin(), p.end());
      for (std::size_t j = 0; j < x; ++j) out["dlogits"].push_back(p[j] * (dp[j] - center));
    }
    return out;
  }
};

TEST(Route, PrecisionAndRepetition) {
  for (const RouteCase& c :
       {RouteCase{33, 8, 3, true}, RouteCase{33, 8, 3, false}, RouteCase{7, 128, 8, true},
        RouteCase{5, 1, 1, true}, RouteCase{20, 37, 37, false}}) {
    SCOPED_TRACE(testing::Message() << c.n << " tokens, " << c.k << " of " << c.x);
    check_precision<double>(c, c.inputs(), {"dlogits"}, {"cotangent"});
    check_precision<float>(c, c.inputs(), {"dlogits"}, {"cotangent"});
    check_precision<bf16>(c, c.inputs(), {"dlogits"}, {"cotangent"});
    check_precision<fp16>(c, c.inputs(), {"dlogits"}, {"cotangent"});
  }
}

TEST(Route, Gradients) {
  for (const RouteCase& c : {RouteCase{3, 6, 2, true}, RouteCase{3, 6, 2, false}}) {
    Named in = c.inputs();
    // Logits far enough apart that a difference chooses no other experts.
    for (std::size_t i = 0; i < in["logits"].size(); ++i)
      in["logits"][i] = 0.3L * static_cast<long double>((7 * i + i / 6) % 6) - 0.5L;
    // For the probabilities, all tokens have the first one's gradient.
    for (std::size_t i = 1; i < c.n; ++i)
      for (std::size_t j = 0; j < c.x; ++j)
        in["cotangent"][i * (c.k + c.x) + c.k + j] = in["cotangent"][c.k + j];
    check_gradients(c, in, "both", "cotangent", {{"logits", "dlogits"}});
  }
}

// Among equal logits the lowest come first, and rows that are not finite choose valid experts.
TEST(Route, TiesAndWhatIsNotFinite) {
  const long double nan = std::numeric_limits<double>::quiet_NaN(),
                    infinity = std::numeric_limits<double>::infinity();
  const Array<float> logits(5, 4, {1,   2,   2,   1, 3,   3, 3,         3,         nan, nan,
                                   nan, nan, nan, 1, nan, 2, -infinity, -infinity, 1,   -infinity});
  const Array<float> p(5, 4), w(5, 3);
  const Array<Index> e(5, 3, Numbers(15));
  ops::run(portable_context(), ops::Route<float>{.renormalize = true,
                                                 .logits = logits.matrix(),
                                                 .probabilities = p.matrix(),
                                                 .weights = w.matrix(),
                                                 .experts = e.matrix()});
  EXPECT_EQ(e.get(), (Numbers{1, 2, 0, 0, 1, 2, 0, 1, 2, 3, 1, 0, 2, 0, 1}));
  const Numbers weights = w.get();
  for (std::size_t i = 6; i < 12; ++i) EXPECT_TRUE(std::isnan(weights[i])) << i;
  for (const std::size_t i : {3, 4, 5}) EXPECT_FLOAT_EQ(static_cast<float>(weights[i]), 1 / 3.0f);
  EXPECT_EQ(weights[12], 1);
}

// ---- sorting

struct Sorted {
  Array<Index> experts, offsets, pairs, tokens, rows;
  Sorted(std::size_t n, std::size_t k, std::size_t x, const Numbers& of)
      : experts(n, k, of),
        offsets(1, x + 1, Numbers(x + 1, -7)),
        pairs(1, n * k, Numbers(n * k, -7)),
        tokens(1, n * k, Numbers(n * k, -7)),
        rows(n, k, Numbers(n * k, -7)) {
    ops::run(portable_context(), ops::SortPairs{.routing = routing()});
  }
  ops::Routing routing() const {
    return {experts.matrix(), offsets.vector(), pairs.vector(), tokens.vector(), rows.matrix()};
  }
};

Numbers drawn_experts(std::size_t pairs, std::size_t x, std::uint32_t seed) {
  Numbers experts(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto word = philox(seed, Stream::test, 0, 0, static_cast<std::uint32_t>(i)).word[0];
    experts[i] = word % (i % 3 ? x : (x + 1) / 2);
  }
  return experts;
}

TEST(SortPairs, IsAStableSort) {
  for (const auto& [n, k, x] :
       {std::array<std::size_t, 3>{50, 3, 7}, {1, 1, 1}, {0, 2, 3}, {4, 2, 200}, {700, 8, 128}}) {
    const Numbers of = drawn_experts(n * k, x, 5);
    const Sorted sorted(n, k, x, of);
    std::vector<std::size_t> order(n * k);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return of[a] < of[b]; });
    const Numbers pairs = sorted.pairs.get(), tokens = sorted.tokens.get(),
                  rows = sorted.rows.get(), offsets = sorted.offsets.get();
    for (std::size_t row = 0; row < order.size(); ++row) {
      EXPECT_EQ(pairs[row], order[row]);
      EXPECT_EQ(tokens[row], order[row] / k);
      EXPECT_EQ(rows[order[row]], row);
    }
    for (std::size_t e = 0; e <= x; ++e)
      EXPECT_EQ(offsets[e], std::count_if(of.begin(), of.end(), [&](auto o) { return o < e; }));
  }
}

// ---- grouped products

struct GroupedCase {
  std::size_t n, k, x, i, o;  // n tokens, k of x experts each

  std::size_t rows() const { return n * k; }
  std::size_t stride() const { return o * i + 5; }

  /// The gradients of a product over all rows, with x taken by token and dy by row.
  Named inputs() const {
    return {{"x", normal_numbers(n * i, 1)},       {"w", normal_numbers(x * stride(), 2, 0.3)},
            {"dy", normal_numbers(rows() * o, 3)}, {"dw0", normal_numbers(x * stride(), 4)},
            {"dout", normal_numbers(n * o, 5)},    {"h", normal_numbers(rows() * i, 6)}};
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const Sorted sorted(n, k, x, drawn_experts(rows(), x, 9));
    const Array<T> tokens(n, i, in.at("x")), w(x, stride(), in.at("w")), dy(rows(), o, in.at("dy")),
        dout(n, o, in.at("dout")), h(rows(), i, in.at("h"));
    const Array<T> y(rows(), o), yh(rows(), o), dx(rows(), i), dh(rows(), i);
    const Array<A> dw(x, stride(), in.at("dw0")), dwh(x, stride(), in.at("dw0"));
    const ops::Grouped<const T> weight{w.matrix().data(), x, o, i, stride()};
    const auto gathered = [&](const Array<T>& of) {
      return ops::Gathered<T>{of.matrix(), sorted.tokens.vector()};
    };
    const Vector<const Index> offsets = sorted.offsets.vector();
    ops::run(context, ops::GroupedForward<T>{
                          .offsets = offsets, .x = gathered(tokens), .w = weight, .y = y.matrix()});
    ops::run(context, ops::GroupedForward<T>{
                          .offsets = offsets, .x = {h.matrix()}, .w = weight, .y = yh.matrix()});
    ops::run(context, ops::GroupedBackwardInput<T>{
                          .offsets = offsets, .dy = {dy.matrix()}, .w = weight, .dx = dx.matrix()});
    ops::run(context,
             ops::GroupedBackwardInput<T>{
                 .offsets = offsets, .dy = gathered(dout), .w = weight, .dx = dh.matrix()});
    ops::run(context, ops::GroupedBackwardWeight<T>{.offsets = offsets,
                                                    .dy = {dy.matrix()},
                                                    .x = gathered(tokens),
                                                    .dw = {dw.matrix().data(), x, o, i, stride()}});
    ops::run(context,
             ops::GroupedBackwardWeight<T>{.offsets = offsets,
                                           .dy = gathered(dout),
                                           .x = {h.matrix()},
                                           .dw = {dwh.matrix().data(), x, o, i, stride()}});
    return {{"y", y.get()},   {"yh", yh.get()}, {"dx", dx.get()},
            {"dh", dh.get()}, {"dw", dw.get()}, {"dwh", dwh.get()}};
  }

  template <class A>
  Named reference(const Named& in) const {
    const Sorted sorted(n, k, x, drawn_experts(rows(), x, 9));
    const Numbers pairs = sorted.pairs.get(), experts = sorted.experts.get();
    Named out{{"y", Numbers(rows() * o)},  {"yh", Numbers(rows() * o)}, {"dx", Numbers(rows() * i)},
              {"dh", Numbers(rows() * i)}, {"dw", in.at("dw0")},        {"dwh", in.at("dw0")}};
    std::vector<A> dw(x * stride()), dwh(x * stride());
    for (std::size_t r = 0; r < rows(); ++r) {
      const auto pair = static_cast<std::size_t>(pairs[r]), token = pair / k;
      const std::size_t group = static_cast<std::size_t>(experts[pair]) * stride();
      const auto *xr = &in.at("x")[token * i], *hr = &in.at("h")[r * i], *w = &in.at("w")[group];
      const auto *dyr = &in.at("dy")[r * o], *dor = &in.at("dout")[token * o];
      for (std::size_t a = 0; a < o; ++a) {
        A y = 0, yh = 0;
        for (std::size_t b = 0; b < i; ++b) {
          y += A(xr[b]) * A(w[a * i + b]), yh += A(hr[b]) * A(w[a * i + b]);
          dw[group + a * i + b] += A(dyr[a]) * A(xr[b]);
          dwh[group + a * i + b] += A(dor[a]) * A(hr[b]);
        }
        out["y"][r * o + a] = y, out["yh"][r * o + a] = yh;
      }
      for (std::size_t b = 0; b < i; ++b) {
        A dx = 0, dh = 0;
        for (std::size_t a = 0; a < o; ++a)
          dx += A(dyr[a]) * A(w[a * i + b]), dh += A(dor[a]) * A(w[a * i + b]);
        out["dx"][r * i + b] = dx, out["dh"][r * i + b] = dh;
      }
    }
    for (std::size_t e = 0; e < dw.size(); ++e) {
      out["dw"][e] = A(out["dw"][e]) + dw[e];
      out["dwh"][e] = A(out["dwh"][e]) + dwh[e];
    }
    return out;
  }
};

TEST(GroupedProducts, PrecisionAndRepetition) {
  const std::set<std::string> stored{"y", "yh", "dx", "dh"}, exact{"dw0"};
  for (const GroupedCase& c : {GroupedCase{33, 3, 5, 35, 43}, GroupedCase{90, 2, 1, 64, 70},
                               GroupedCase{3, 1, 9, 65, 5}, GroupedCase{130, 2, 2, 16, 129}}) {
    SCOPED_TRACE(testing::Message() << c.n << " tokens, " << c.k << " of " << c.x);
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
    check_precision<fp16>(c, c.inputs(), stored, exact);
  }
}

TEST(GroupedProducts, WrongShapesAreRefused) {
  const Sorted sorted(4, 1, 3, {0, 1, 2, 2});
  const Array<float> x(4, 5), w(3, 10), y(4, 2), narrow(4, 1);
  const auto run = [&](const Matrix<float>& to, std::size_t experts) {
    ops::run(portable_context(),
             ops::GroupedForward<float>{.offsets = sorted.offsets.vector(),
                                        .x = {x.matrix()},
                                        .w = {w.matrix().data(), experts, 2, 5, 10},
                                        .y = to});
  };
  EXPECT_NO_THROW(run(y.matrix(), 3));
  EXPECT_ANY_THROW(run(narrow.matrix(), 3));
  EXPECT_ANY_THROW(run(y.matrix(), 2));
}

// ---- between the products

struct SwigluCase {
  std::size_t n, k, f;

  Named inputs() const {
    return {{"x", normal_numbers(n * k * 2 * f, 1)},
            {"weights", normal_numbers(n * k, 2)},
            {"dy", normal_numbers(n * k * f, 3)}};
  }
  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const std::size_t rows = n * k;
    const Sorted sorted(n, k, 4, drawn_experts(rows, 4, 9));
    const Array<T> x(rows, 2 * f, in.at("x")), dy(rows, f, in.at("dy")), y(rows, f),
        dx(rows, 2 * f), in_place(rows, 2 * f, in.at("x"));
    const Array<A> w(n, k, in.at("weights")), dw(n, k), again(n, k);
    const auto& context = portable_context();
    const Vector<const Index> pairs = sorted.pairs.vector();
    ops::run(context, ops::WeightedSwiglu<T>{
                          .x = x.matrix(), .weights = w.matrix(), .pairs = pairs, .y = y.matrix()});
    ops::run(context, ops::WeightedSwigluBackward<T>{.x = x.matrix(),
                                                     .weights = w.matrix(),
                                                     .pairs = pairs,
                                                     .dy = dy.matrix(),
                                                     .dx = dx.matrix(),
                                                     .dweights = dw.matrix()});
    ops::run(context, ops::WeightedSwigluBackward<T>{.x = in_place.matrix(),
                                                     .weights = w.matrix(),
                                                     .pairs = pairs,
                                                     .dy = dy.matrix(),
                                                     .dx = in_place.matrix(),
                                                     .dweights = again.matrix()});
    EXPECT_EQ(in_place.get(), dx.get());
    EXPECT_EQ(again.get(), dw.get());
    return {{"y", y.get()}, {"dx", dx.get()}, {"dw", dw.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    const std::size_t rows = n * k;
    const Sorted sorted(n, k, 4, drawn_experts(rows, 4, 9));
    const Numbers pairs = sorted.pairs.get();
    Named out{{"y", Numbers(rows * f)}, {"dx", Numbers(rows * 2 * f)}, {"dw", Numbers(rows)}};
    for (std::size_t r = 0; r < rows; ++r) {
      const auto pair = static_cast<std::size_t>(pairs[r]);
      const A w = A(in.at("weights")[pair]);
      A dw = 0;
      for (std::size_t c = 0; c < f; ++c) {
        const A g = A(in.at("x")[r * 2 * f + c]), u = A(in.at("x")[r * 2 * f + f + c]);
        const A d = A(in.at("dy")[r * f + c]), s = 1 / (1 + std::exp(-g));
        out["y"][r * f + c] = w * g * s * u;
        dw += d * g * s * u;
        out["dx"][r * 2 * f + c] = w * d * u * s * (1 + g * (1 - s));
        out["dx"][r * 2 * f + f + c] = w * d * g * s;
      }
      out["dw"][pair] = dw;
    }
    return out;
  }
};

TEST(WeightedSwiglu, PrecisionAndRepetition) {
  for (const SwigluCase& c : {SwigluCase{17, 3, 21}, SwigluCase{40, 2, 64}}) {
    check_precision<double>(c, c.inputs(), {"y", "dx"}, {"weights"});
    check_precision<float>(c, c.inputs(), {"y", "dx"}, {"weights"});
    check_precision<bf16>(c, c.inputs(), {"y", "dx"}, {"weights"});
    check_precision<fp16>(c, c.inputs(), {"y", "dx"}, {"weights"});
  }
}

TEST(WeightedSwiglu, Gradients) {
  const SwigluCase c{3, 2, 5};
  check_gradients(c, c.inputs(), "y", "dy", {{"x", "dx"}, {"weights", "dw"}});
}

TEST(Combine, AddsTheRowsOfEachToken) {
  constexpr std::size_t n = 19, k = 3, d = 37;
  const Numbers values = rounded<float>(normal_numbers(n * k * d, 1)),
                base = rounded<float>(normal_numbers(n * d, 2));
  const Sorted sorted(n, k, 5, drawn_experts(n * k, 5, 9));
  const Array<double> from(n * k, d, values), to(n, d), onto(n, d, base);
  const Matrix<const Index> of = sorted.rows.matrix();
  ops::run(portable_context(),
           ops::Combine<double>{.values = from.matrix(), .rows = of, .to = to.matrix()});
  ops::run(portable_context(),
           ops::Combine<double>{
               .values = from.matrix(), .rows = of, .added = onto.matrix(), .to = onto.matrix()});
  const Numbers rows = sorted.rows.get(), sum = to.get(), total = onto.get();
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t c = 0; c < d; ++c) {
      double expected = 0;
      for (std::size_t j = 0; j < k; ++j)
        expected += static_cast<double>(values[static_cast<std::size_t>(rows[t * k + j]) * d + c]);
      EXPECT_EQ(sum[t * d + c], expected);
      EXPECT_EQ(total[t * d + c], static_cast<double>(base[t * d + c]) + expected);
    }
}

// Two layers' pairs and probabilities, counted by hand.
TEST(Balance, IsTheSwitchTransformersLoss) {
  constexpr std::size_t n = 3, x = 4;
  const Array<double> p(n, x,
                        {0.5, 0.25, 0.25, 0, 0.125, 0.5, 0.125, 0.25, 0.25, 0.25, 0.25, 0.25});
  const Array<double> counts(2, x), sums(2, x), balance(1, x), shares(1, x), loss(1, 1);
  const Sorted first(n, 1, x, {0, 1, 0}), second(n, 1, x, {3, 1, 1});
  const auto& context = portable_context();
  const auto row = [](const Array<double>& of, std::size_t i) {
    return Vector<double>(of.matrix().data() + i * x, x);
  };
  ops::run(context, ops::TallyExperts<double>{.offsets = first.offsets.vector(),
                                              .probabilities = p.matrix(),
                                              .counts = row(counts, 0),
                                              .sums = row(sums, 0)});
  ops::run(context, ops::TallyExperts<double>{.offsets = second.offsets.vector(),
                                              .probabilities = p.matrix(),
                                              .counts = row(counts, 1),
                                              .sums = row(sums, 1)});
  ops::run(context, ops::ExpertBalance<double>{.weight = 0.5,
                                               .tokens = 2 * n,
                                               .counts = counts.matrix(),
                                               .sums = sums.matrix(),
                                               .balance = balance.vector(),
                                               .shares = shares.vector(),
                                               .loss = loss.vector()});
  EXPECT_EQ(counts.get(), (Numbers{2, 1, 0, 0, 0, 2, 0, 1}));
  EXPECT_EQ(sums.get(), (Numbers{0.875, 1, 0.625, 0.5, 0.875, 1, 0.625, 0.5}));
  // 4 (2/6 1.75/6 + 3/6 2/6 + 0 + 1/6 1/6)
  EXPECT_NEAR(static_cast<double>(loss.get()[0]), 4 * (3.5 + 6 + 1) / 36, 1e-15);
  const Numbers gradient = balance.get();
  for (const auto& [e, pairs] : {std::pair{0, 2}, {1, 3}, {2, 0}, {3, 1}})
    EXPECT_NEAR(static_cast<double>(gradient[e]), 0.5 * 4 * pairs / 36.0, 1e-15);
}

}  // namespace
}  // namespace tern::test
