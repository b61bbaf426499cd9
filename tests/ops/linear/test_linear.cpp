// y = x w^T + bias and its gradients; sums of columns.
#include "checks/cases/linear.hpp"
#include "ops/check.hpp"

namespace tern::test {
namespace {

struct LinearTest : checks::LinearCase {
  LinearTest(std::size_t rows, std::size_t inputs, std::size_t outputs, bool with_bias,
             ops::Write mode)
      : LinearCase{rows,      inputs, outputs,
                   with_bias, mode,   mode == ops::Write::add ? Added::in_place : Added::nothing} {}

  Named inputs() const {
    return {{"x", normal_numbers(N * I, 1)},   {"w", normal_numbers(O * I, 2, 0.3)},
            {"bias", normal_numbers(O, 3)},    {"dy", normal_numbers(N * O, 4)},
            {"y0", normal_numbers(N * O, 5)},  {"dx0", normal_numbers(N * I, 6)},
            {"dw0", normal_numbers(O * I, 7)}, {"dbias0", normal_numbers(O, 8)}};
  }

  template <class T>
  Named run(const Named& in) const {
    NamedMemory<T> m(in);
    ops::run(portable_context(), forward<T>(m));
    ops::run(portable_context(), backward_input<T>(m));
    ops::run(portable_context(), backward_weight<T>(m));
    return m.results();
  }

  template <class A>
  Named reference(const Named& in) const {
    const std::size_t n = N, i = I, o = O;
    const auto &x = in.at("x"), &w = in.at("w"), &dy = in.at("dy");
    const A keep = write == ops::Write::add ? 1 : 0;
    Named out{{"y", in.at("y0")}, {"dx", in.at("dx0")}, {"dw", in.at("dw0")}};
    if (bias) out["dbias"] = in.at("dbias0");
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t c = 0; c < o; ++c) {
        A sum = keep * A(out["y"][r * o + c]) + (bias ? A(in.at("bias")[c]) : A(0));
        for (std::size_t k = 0; k < i; ++k) sum += A(x[r * i + k]) * A(w[c * i + k]);
        out["y"][r * o + c] = sum;
      }
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t c = 0; c < i; ++c) {
        A sum = keep * A(out["dx"][r * i + c]);
        for (std::size_t k = 0; k < o; ++k) sum += A(dy[r * o + k]) * A(w[k * i + c]);
        out["dx"][r * i + c] = sum;
      }
    for (std::size_t r = 0; r < o; ++r)
      for (std::size_t c = 0; c < i; ++c) {
        A sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += A(dy[k * o + r]) * A(x[k * i + c]);
        out["dw"][r * i + c] = keep * A(out["dw"][r * i + c]) + sum;
      }
    for (std::size_t c = 0; bias && c < o; ++c) {
      A sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += A(dy[k * o + c]);
      out["dbias"][c] = A(out["dbias"][c]) + sum;
    }
    return out;
  }
};

const LinearTest cases[] = {
    {67, 35, 43, true, ops::Write::overwrite}, {67, 35, 43, false, ops::Write::add},
    {1, 5, 3, true, ops::Write::add},          {130, 129, 70, true, ops::Write::add},
    {5, 1, 1, false, ops::Write::overwrite},   {64, 64, 128, true, ops::Write::overwrite},
    {0, 6, 4, true, ops::Write::overwrite},    {0, 6, 4, true, ops::Write::add},
};

// A GPU drops or rounds 13 of an operand's 23 bits of mantissa: at most 2^-10 of each number.
TEST(Linear, Tf32RoundsOperandsOnGpusOnly) {
  constexpr std::size_t N = 64, I = 96, O = 128;
  const Array<float> x(N, I, normal_numbers(N * I, 1)), w(O, I, normal_numbers(O * I, 2));
  const auto product = [&](bool tf32) {
    ops::Context context = portable_context();
    context.tf32 = tf32;
    const Array<float> y(N, O);
    ops::run(context, ops::LinearForward<float>{.x = x.matrix(), .w = w.matrix(), .y = y.matrix()});
    return y.get();
  };
  const double difference = relative_error(product(true), product(false));
  if (std::is_same_v<DeviceMemory, Kokkos::HostSpace>) {
    EXPECT_EQ(difference, 0);
  } else {
    EXPECT_GT(difference, 1e-5);
    EXPECT_LT(difference, 2e-3);
  }
}

TEST(Linear, WhatIsAddedMayBeAnotherMatrix) {
  constexpr std::size_t N = 7, I = 5, O = 9;
  const Array<float> x(N, I, normal_numbers(N * I, 1)), w(O, I, normal_numbers(O * I, 2));
  const Array<float> added(N, O, normal_numbers(N * O, 3)), bias(normal_numbers(O, 4));
  const Array<float> in_place(N, O, added.get()), apart(N, O, normal_numbers(N * O, 5));
  const auto multiply = [&](const Array<float>& y, const Array<float>& from) {
    ops::run(portable_context(), ops::LinearForward<float>{.x = x.matrix(),
                                                           .w = w.matrix(),
                                                           .bias = bias.vector(),
                                                           .y = y.matrix(),
                                                           .added = from.matrix()});
    return y.get();
  };
  EXPECT_EQ(multiply(apart, added), multiply(in_place, in_place));
  EXPECT_ANY_THROW(multiply(apart, x));
}

TEST(Linear, PrecisionAndRepetition) {
  const std::set<std::string> stored{"y", "dx"}, exact{"dw0", "dbias0"};
  for (const LinearTest& c : cases) {
    SCOPED_TRACE(testing::Message() << c.N << " x " << c.I << " -> " << c.O);
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
    check_precision<fp16>(c, c.inputs(), stored, exact);
  }
}

TEST(Linear, Gradients) {
  for (const LinearTest& c : {LinearTest{7, 5, 3, true, ops::Write::overwrite},
                              LinearTest{7, 5, 3, false, ops::Write::overwrite},
                              LinearTest{7, 5, 3, true, ops::Write::add}}) {
    const Named in = c.inputs();
    std::vector<std::pair<std::string, std::string>> pairs{{"x", "dx"}, {"w", "dw"}};
    if (c.bias) pairs.push_back({"bias", "dbias"});
    Named already{{"dbias", in.at("dbias0")}};
    if (c.write == ops::Write::add) already["dx"] = in.at("dx0"), already["dw"] = in.at("dw0");
    check_gradients(c, in, "y", "dy", pairs, already);
  }
}

struct ColumnSumsCase {
  std::size_t n, d;

  Named inputs() const {
    return {{"x", normal_numbers(n * d, 1)}, {"sums0", normal_numbers(d, 2)}};
  }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> x(n, d, in.at("x"));
    const Array<Accumulate<T>> sums(in.at("sums0"));
    ops::run(portable_context(), ops::ColumnSums<T>{.x = x.matrix(), .sums = sums.vector()});
    return {{"sums", sums.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"sums", in.at("sums0")}};
    for (std::size_t c = 0; c < d; ++c) {
      A sum = 0;
      for (std::size_t r = 0; r < n; ++r) sum += A(in.at("x")[r * d + c]);
      out["sums"][c] = A(out["sums"][c]) + sum;
    }
    return out;
  }
};

TEST(ColumnSums, PrecisionAndRepetition) {
  for (const ColumnSumsCase& c : {ColumnSumsCase{67, 131}, ColumnSumsCase{1, 5},
                                  ColumnSumsCase{1000, 64}, ColumnSumsCase{0, 9}}) {
    SCOPED_TRACE(testing::Message() << c.n << " x " << c.d);
    check_precision<double>(c, c.inputs(), {}, {"sums0"});
    check_precision<float>(c, c.inputs(), {}, {"sums0"});
    check_precision<bf16>(c, c.inputs(), {}, {"sums0"});
    check_precision<fp16>(c, c.inputs(), {}, {"sums0"});
  }
}

TEST(ColumnSums, WrongShapesAreRefused) {
  const Array<float> x(2, 3), sums(1, 2);
  EXPECT_ANY_THROW(
      ops::run(portable_context(), ops::ColumnSums<float>{.x = x.matrix(), .sums = sums.vector()}));
}

TEST(Linear, WrongShapesAreRefused) {
  const Array<float> x(2, 3), w(4, 5), y(2, 4);
  EXPECT_ANY_THROW(
      ops::run(portable_context(),
               ops::LinearForward<float>{.x = x.matrix(), .w = w.matrix(), .y = y.matrix()}));
}

}  // namespace
}  // namespace tern::test
