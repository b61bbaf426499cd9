// Addition, conversion, normal numbers, sums over whole vectors and over sequences.
#include "ops/check.hpp"
#include "ops/core/portable/math.hpp"

namespace tern::test {
namespace {

struct AddCase {
  std::size_t n;
  Named inputs() const { return {{"x", normal_numbers(n, 1)}, {"y0", normal_numbers(n, 2)}}; }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> x(in.at("x")), y(in.at("y0"));
    ops::run(portable_context(), ops::Add<T>{.x = x.matrix(), .y = y.matrix()});
    return {{"y", y.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"y", in.at("y0")}};
    for (std::size_t i = 0; i < n; ++i) out["y"][i] = A(out["y"][i]) + A(in.at("x")[i]);
    return out;
  }
};

TEST(Add, PrecisionAndRepetition) {
  for (const std::size_t n : {1, 63, 5000}) {
    const AddCase c{n};
    check_precision<double>(c, c.inputs(), {"y"});
    check_precision<float>(c, c.inputs(), {"y"});
    check_precision<bf16>(c, c.inputs(), {"y"});
    check_precision<fp16>(c, c.inputs(), {"y"});
  }
}

/// Each term has `rows` rows, one row or none.
struct ThreeCase {
  std::size_t rows, columns, own[3];

  Named inputs() const {
    return {{"a", normal_numbers(own[0] * columns, 1)},
            {"b", normal_numbers(own[1] * columns, 2)},
            {"c", normal_numbers(own[2] * columns, 3)}};
  }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> a(own[0], columns, in.at("a")), b(own[1], columns, in.at("b")),
        c(own[2], columns, in.at("c")), to(rows, columns);
    ops::run(portable_context(),
             ops::Sum<T>{.a = a.matrix(), .b = b.matrix(), .c = c.matrix(), .to = to.matrix()});
    return {{"to", to.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    const Numbers* terms[] = {&in.at("a"), &in.at("b"), &in.at("c")};
    Named out{{"to", Numbers(rows * columns)}};
    for (std::size_t i = 0; i < rows * columns; ++i) {
      A sum = 0;
      for (int k = 0; k < 3; ++k)
        if (own[k] > 0) sum += A((*terms[k])[own[k] == 1 ? i % columns : i]);
      out["to"][i] = sum;
    }
    return out;
  }
};

TEST(SumOfThree, PrecisionAndRepetition) {
  for (const ThreeCase& c :
       {ThreeCase{37, 53, {37, 37, 37}}, ThreeCase{37, 53, {37, 1, 37}},
        ThreeCase{37, 53, {1, 37, 0}}, ThreeCase{5, 129, {0, 0, 1}}, ThreeCase{5, 129, {1, 1, 1}},
        ThreeCase{1, 64, {1, 0, 1}}, ThreeCase{33, 1, {0, 33, 1}}, ThreeCase{3, 7, {0, 0, 0}}}) {
    SCOPED_TRACE(testing::Message() << c.own[0] << " + " << c.own[1] << " + " << c.own[2]);
    check_precision<double>(c, c.inputs(), {"to"});
    check_precision<float>(c, c.inputs(), {"to"});
    check_precision<bf16>(c, c.inputs(), {"to"});
    check_precision<fp16>(c, c.inputs(), {"to"});
  }
}

TEST(SumOfThree, MayOverwriteATermOfAllRows) {
  for (const std::size_t repeated : {1, 6}) {
    const Array<float> a(6, 5, normal_numbers(30, 1)),
        b(repeated, 5, normal_numbers(repeated * 5, 2)), to(6, 5),
        in_place(6, 5, normal_numbers(30, 3)), c(6, 5, normal_numbers(30, 3));
    const ops::Context context = portable_context();
    ops::run(context,
             ops::Sum<float>{.a = a.matrix(), .b = b.matrix(), .c = c.matrix(), .to = to.matrix()});
    ops::run(
        context,
        ops::Sum<float>{
            .a = a.matrix(), .b = b.matrix(), .c = in_place.matrix(), .to = in_place.matrix()});
    EXPECT_EQ(in_place.get(), to.get()) << repeated;
  }
}

TEST(SumOfThree, WrongShapesAreRefused) {
  const Array<float> to(6, 4), none(0, 4), all(6, 4);
  const auto sum = [&](const Array<float>& term) {
    ops::run(portable_context(),
             ops::Sum<float>{
                 .a = all.matrix(), .b = none.matrix(), .c = term.matrix(), .to = to.matrix()});
  };
  EXPECT_NO_THROW(sum(Array<float>(1, 4)));
  EXPECT_ANY_THROW(sum(Array<float>(2, 4)));
  EXPECT_ANY_THROW(sum(Array<float>(6, 3)));
  EXPECT_ANY_THROW(sum(Array<float>(1, 24)));  // as many numbers as the sum, but one row
  EXPECT_ANY_THROW(sum(Array<float>(4, 1)));   // as many as a row, but four rows
}

template <class From, class To>
void check_conversion() {
  const Numbers values = rounded<From>(normal_numbers(3001, 1, 100));
  const Array<From> from(values);
  const Array<To> to(1, values.size());
  ops::run(portable_context(), ops::Convert<From, To>{.from = from.vector(), .to = to.vector()});
  EXPECT_EQ(to.get(), rounded<To>(values)) << type_name<From>() << " to " << type_name<To>();
}

TEST(Convert, RoundsToNearest) {
  check_conversion<float, float>();
  check_conversion<float, bf16>();
  check_conversion<bf16, float>();
  check_conversion<bf16, bf16>();
  check_conversion<double, bf16>();
  check_conversion<bf16, double>();
  check_conversion<float, fp16>();
  check_conversion<fp16, float>();
  check_conversion<double, fp16>();
  check_conversion<fp16, double>();
  check_conversion<float, double>();
  check_conversion<double, float>();
  check_conversion<double, double>();
}

template <class T>
Numbers drawn(const ops::Normal& of, std::size_t count) {
  const Array<T> to(1, count);
  ops::run(portable_context(), ops::DrawNormal<T>{.of = of, .to = to.vector()});
  return to.get();
}

/// Columns 3 to 7 of a matrix of 11, from row 5 on: the numbers of the whole matrix at these places.
TEST(DrawNormal, OfAPartAreThoseOfTheWhole) {
  const ops::Normal whole{0.5, 2, 7, 1, 11, 11, 0, 0};
  const Numbers all = drawn<float>(whole, 11 * 40);
  const ops::Normal part{0.5, 2, 7, 1, 5, 11, 5 * 11 + 3, 0};
  const Numbers some = drawn<float>(part, 5 * 30);
  for (std::size_t i = 0; i < some.size(); ++i)
    ASSERT_EQ(some[i], all[(5 + i / 5) * 11 + 3 + i % 5]) << i;
  ops::Normal later = part;
  later.begin = 8;
  const Numbers rest = drawn<float>(later, 5 * 30 - 8);
  EXPECT_EQ(rest, Numbers(some.begin() + 8, some.end()));
  ops::Normal other = whole;
  other.matrix = 2;
  EXPECT_NE(drawn<float>(other, 11 * 40), all);
}

TEST(DrawNormal, MomentsAndPrecision) {
  const std::size_t count = 200'000;
  const ops::Normal of{-1, 0.5, 3, 4, count, count, 0, 0};
  const Numbers exact = drawn<double>(of, count), rounded = drawn<bf16>(of, count);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double normal = (exact[i] + 1) / 0.5;
    sum += normal, squares += normal * normal;
    ASSERT_NEAR(rounded[i], exact[i], 0.004 * std::abs(exact[i]) + 1e-30);
  }
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2.0 / count));
}

struct SumCase {
  std::size_t n;
  Named inputs() const {
    return {{"values", normal_numbers(n, 1)}, {"weights", normal_numbers(n, 2)}};
  }
  template <class A>
  Named run(const Named& in) const {
    const auto& context = portable_context();
    const Array<A> values(in.at("values")), weights(in.at("weights")), plain(1, 1), weighted(1, 1),
        squares(1, 1);
    ops::run(context, ops::WeightedSum<A>{
                          .values = values.vector(), .weights = {}, .result = plain.vector()});
    ops::run(context, ops::WeightedSum<A>{.values = values.vector(),
                                          .weights = weights.vector(),
                                          .result = weighted.vector()});
    ops::run(context, ops::SumOfSquares<A>{.values = values.vector(), .result = squares.vector()});
    return {{"plain", plain.get()}, {"weighted", weighted.get()}, {"squares", squares.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    A plain = 0, weighted = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const A v = in.at("values")[i];
      plain += v;
      weighted += v * A(in.at("weights")[i]);
      squares += v * v;
    }
    return {{"plain", {plain}}, {"weighted", {weighted}}, {"squares", {squares}}};
  }
};

template <class A>
void check_sums(std::size_t n) {
  const SumCase c{n};
  Named in = c.inputs();
  for (auto& [name, values] : in) values = rounded<A>(values);
  const Named result = c.run<A>(in), truth = c.reference<long double>(in);
  // Judged against the size of the terms, since a sum may cancel. Sums in float are added up in
  // double and rounded once; those in double are a running sum of 1024 parts.
  const double roundings = std::is_same_v<A, double> ? std::sqrt(1024) : 1;
  const double eps = std::numeric_limits<A>::epsilon(), terms = std::sqrt(double(n) + 1);
  for (const auto& [name, values] : truth)
    EXPECT_NEAR(result.at(name)[0], values[0], eps * (4 * terms + roundings * std::fabs(values[0])))
        << name;
  EXPECT_EQ(result, c.run<A>(in));
}

TEST(Sums, PrecisionAndRepetition) {
  for (const std::size_t n : {0, 1, 1000, 123457}) {
    check_sums<float>(n);
    check_sums<double>(n);
  }
  // Ten million equal squares: a running sum in float would stop growing.
  const std::size_t n = 10'000'000;
  const Array<float> values(1, n), result(1, 1);
  Kokkos::deep_copy(values.vector(), 3.0f);
  ops::run(portable_context(),
           ops::SumOfSquares<float>{.values = values.vector(), .result = result.vector()});
  EXPECT_EQ(result.get()[0], 9e7);
}

TEST(Sums, NotANumberShows) {
  Numbers values(5000, 1.0);
  values[4321] = std::nan("");
  const Array<float> v(values), result(1, 1);
  ops::run(portable_context(),
           ops::SumOfSquares<float>{.values = v.vector(), .result = result.vector()});
  EXPECT_TRUE(std::isnan(result.get()[0]));
}

/// Every third row has no target, and then a loss that must not count; the second sequence has
/// no target at all, the third no loss.
struct ImprovementCase {
  std::size_t sequences, tokens;
  double unit, base, reward;

  Named inputs() const {
    const std::size_t n = sequences * tokens;
    Named in{{"losses", normal_numbers(n, 1)}, {"targets", Numbers(n)}};
    for (std::size_t i = 0; i < n; ++i) {
      const bool scored = i % 3 != 1 && i / tokens != 1;
      in["targets"][i] = scored ? double(i) : -1.0 - double(i);
      in["losses"][i] = !scored ? 1e3 : i / tokens == 2 ? 0 : std::fabs(in["losses"][i]) + 1e-3;
    }
    return in;
  }
  template <class A>
  Named run(const Named& in) const {
    const Array<A> losses(in.at("losses")), weights(1, sequences * tokens);
    const Array<std::int32_t> targets(in.at("targets"));
    ops::run(portable_context(), ops::ImprovementWeights<A>{.unit = unit,
                                                            .base = base,
                                                            .reward = reward,
                                                            .losses = losses.vector(),
                                                            .targets = targets.vector(),
                                                            .tokens = tokens,
                                                            .weights = weights.vector()});
    return {{"weights", weights.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"weights", Numbers(sequences * tokens)}};
    for (std::size_t s = 0; s < sequences; ++s) {
      A sum = 0, count = 0;
      for (std::size_t i = s * tokens; i < (s + 1) * tokens; ++i)
        if (in.at("targets")[i] >= 0) sum += A(in.at("losses")[i]), count += 1;
      for (std::size_t i = s * tokens; i < (s + 1) * tokens; ++i)
        out["weights"][i] = A(unit) * (sum > 0 ? A(base) + A(reward) / (sum / count) : A(base));
    }
    return out;
  }
};

TEST(ImprovementWeights, PrecisionAndRepetition) {
  for (const ImprovementCase& c :
       {ImprovementCase{5, 131, 1.0 / 655, 0.2, 0.3}, ImprovementCase{3, 1, 1, 5, 1},
        ImprovementCase{4, 7, 0.25, 0, 2}, ImprovementCase{4, 64, 1e-3, 1, 0}}) {
    SCOPED_TRACE(testing::Message() << c.sequences << " sequences of " << c.tokens);
    check_precision<double>(c, c.inputs(), {}, {"targets"});
    check_precision<float>(c, c.inputs(), {}, {"targets"});
  }
}

TEST(ImprovementWeights, ByHand) {
  const ImprovementCase c{3, 2, 0.5, 3, 8};
  const Numbers weights =
      c.run<double>({{"losses", {1, 3, 9, 4, 7, 7}}, {"targets", {0, 5, -1, 1, -1, -1}}})
          .at("weights");
  EXPECT_EQ(weights, (Numbers{3.5, 3.5, 2.5, 2.5, 1.5, 1.5}));
}

TEST(ImprovementWeights, WrongSizesAreRefused) {
  const Array<double> losses(1, 6), weights(1, 6), five(1, 5);
  const Array<std::int32_t> targets(Numbers(6, 0.0));
  const auto weigh = [&](const Array<double>& from, std::size_t tokens, const Array<double>& to) {
    ops::run(portable_context(), ops::ImprovementWeights<double>{.unit = 1,
                                                                 .base = 1,
                                                                 .reward = 1,
                                                                 .losses = from.vector(),
                                                                 .targets = targets.vector(),
                                                                 .tokens = tokens,
                                                                 .weights = to.vector()});
  };
  EXPECT_NO_THROW(weigh(losses, 3, weights));
  EXPECT_ANY_THROW(weigh(losses, 4, weights));
  EXPECT_ANY_THROW(weigh(losses, 0, weights));
  EXPECT_ANY_THROW(weigh(five, 1, weights));
  EXPECT_ANY_THROW(weigh(losses, 3, five));
}

TEST(Exponential, IsWithinTwoUlpsEverywhere) {
  double worst = 0;
  for (float x = -87.3f; x <= 88.72f; x += 0.00037f) {
    const double exact = std::exp(double(x));
    const auto nearest = static_cast<float>(exact);
    const double ulp = std::nextafter(nearest, INFINITY) - nearest;
    worst = std::max(worst, std::fabs(ops::portable::exponential(x) - exact) / ulp);
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(ops::portable::exponential(-INFINITY), 0.0f);
  EXPECT_EQ(ops::portable::exponential(INFINITY), INFINITY);
  EXPECT_EQ(ops::portable::exponential(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(ops::portable::exponential(NAN)));
}

struct MoveAverageCase {
  std::size_t n;
  double decay;
  Named inputs() const {
    return {{"values", normal_numbers(n, 1)}, {"average0", normal_numbers(n, 2)}};
  }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> values(in.at("values")), average(in.at("average0"));
    ops::run(portable_context(),
             ops::MoveAverage<T>{
                 .decay = decay, .values = values.vector(), .average = average.vector()});
    EXPECT_EQ(values.get(), in.at("values"));
    return {{"average", average.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"average", in.at("average0")}};
    for (std::size_t i = 0; i < n; ++i) {
      const A average = A(in.at("average0")[i]);
      out["average"][i] = average + A(1 - decay) * (A(in.at("values")[i]) - average);
    }
    return out;
  }
};

TEST(MoveAverage, PrecisionAndRepetition) {
  for (const MoveAverageCase& c : {MoveAverageCase{1, 0.5}, {1000, 0.9999}, {1003, 0.0}}) {
    check_precision<double>(c, c.inputs(), {"average"});
    check_precision<float>(c, c.inputs(), {"average"});
  }
  const MoveAverageCase still{50, 1};
  const Named in = still.inputs();
  EXPECT_EQ(still
                .run<double>({{"values", rounded<double>(in.at("values"))},
                              {"average0", rounded<double>(in.at("average0"))}})
                .at("average"),
            rounded<double>(in.at("average0")));
}

template <class A>
void check_exchange() {
  for (const std::size_t n : {1, 17, 1000}) {
    const Numbers first = rounded<A>(normal_numbers(n, 1)),
                  second = rounded<A>(normal_numbers(n, 2));
    const Array<A> a(first), b(second);
    ops::run(portable_context(), ops::Exchange<A>{.a = a.vector(), .b = b.vector()});
    EXPECT_EQ(a.get(), second);
    EXPECT_EQ(b.get(), first);
  }
}

TEST(Exchange, GivesEachTheOthers) {
  check_exchange<float>();
  check_exchange<double>();
}

}  // namespace
}  // namespace tern::test
