// The elementwise steps of Muon: momentum, normalisation, polynomial, descent.
#include "ops/check.hpp"

namespace tern::test {
namespace {

struct NesterovCase {
  std::size_t n;
  double momentum;

  Named inputs() const {
    return {
        {"gradient", normal_numbers(n, 1)}, {"buffer0", normal_numbers(n, 2)}, {"scale", {0.75}}};
  }
  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const Array<A> gradient(in.at("gradient")), buffer(in.at("buffer0")), scale(in.at("scale"));
    ops::nesterov<A>(portable_context(), momentum, gradient.vector(), scale.vector(),
                     buffer.vector());
    return {{"buffer", buffer.get()}, {"direction", gradient.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"buffer", Numbers(n)}, {"direction", Numbers(n)}};
    for (std::size_t i = 0; i < n; ++i) {
      const A g = A(in.at("scale")[0]) * A(in.at("gradient")[i]);
      const A buffer = A(momentum) * A(in.at("buffer0")[i]) + A(1 - momentum) * g;
      out["buffer"][i] = buffer;
      out["direction"][i] = A(1 - momentum) * g + A(momentum) * buffer;
    }
    return out;
  }
};

TEST(MuonSteps, Nesterov) {
  for (const std::size_t n : {1, 77, 5001})
    for (const double momentum : {0.0, 0.95}) {
      const NesterovCase c{n, momentum};
      const std::set<std::string> exact{"gradient", "buffer0", "scale"};
      check_precision<double>(c, c.inputs(), {}, exact);
      check_precision<float>(c, c.inputs(), {}, exact);
    }
}

/// normalize() of `from` into x, combine() of x x^T's shape, descend() along x.
struct StepsCase {
  std::size_t rows, columns;
  bool flip;  // x is (columns, rows)

  Named inputs() const {
    const std::size_t m = rows * columns, s = rows * rows;
    return {{"from", normal_numbers(m, 1)},
            {"squares", {123.0}},
            {"x", normal_numbers(m, 2)},
            {"master0", normal_numbers(m, 3)},
            {"square0", normal_numbers(s, 4)},
            {"gram", normal_numbers(s, 5)},
            {"scale", {0.5}}};
  }
  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const std::size_t a = flip ? columns : rows, b = flip ? rows : columns;
    const Array<A> from(rows, columns, in.at("from")), master(rows, columns, in.at("master0")),
        squares(in.at("squares")), scale(in.at("scale"));
    const Array<T> x(a, b, in.at("x")), unit(a, b), copy(rows, columns),
        gram(rows, rows, in.at("gram")), square(rows, rows, in.at("square0"));
    ops::normalize<T>(context, from.matrix(), squares.vector(), 1e-7, unit.matrix());
    ops::combine<T>(context, 3.5, -4.75, gram.matrix(), 2.0, square.matrix());
    ops::descend<T, T>(context, 0.75, 0.02, x.matrix(), scale.vector(), master.matrix(),
                       copy.matrix());
    return {{"unit", unit.get()},
            {"square", square.get()},
            {"master", master.get()},
            {"copy", copy.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    const std::size_t m = rows * columns, s = rows * rows;
    Named out{{"unit", Numbers(m)}, {"square", Numbers(s)}, {"master", Numbers(m)}};
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t i = r * columns + c, j = flip ? c * rows + r : i;
        out["unit"][j] = A(in.at("from")[i]) / std::sqrt(A(in.at("squares")[0]));
        out["master"][i] = A(0.75) * A(in.at("master0")[i]) - A(0.02) * A(in.at("x")[j]);
      }
    out["copy"] = out["master"];
    for (std::size_t i = 0; i < s; ++i)
      out["square"][i] = (i / rows == i % rows ? A(3.5) : A(0)) +
                         (A(-4.75) * A(in.at("gram")[i]) + A(2) * A(in.at("square0")[i]));
    return out;
  }
};

TEST(MuonSteps, OfMatrices) {
  for (const StepsCase& c : {StepsCase{9, 31, false}, StepsCase{31, 9, true},
                             StepsCase{17, 17, false}, StepsCase{90, 65, true}}) {
    const std::set<std::string> exact{"from", "squares", "master0", "scale"};
    const std::set<std::string> stored{"unit", "square", "copy"};
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
  }
}

// A direction in float32 beside masters with bf16 copies, as on the host.
TEST(MuonSteps, DirectionOfAnotherType) {
  const StepsCase c{9, 31, true};
  const Named in = c.inputs(), truth = c.reference<long double>(in);
  const Array<float> master(9, 31, in.at("master0")), x(31, 9, in.at("x")), scale(in.at("scale"));
  const Array<bf16> copy(9, 31);
  ops::descend<bf16, float>(portable_context(), 0.75, 0.02, x.matrix(), scale.vector(),
                            master.matrix(), copy.matrix());
  EXPECT_LE(relative_error(master.get(), truth.at("master")), 1e-6);
  EXPECT_EQ(copy.get(), rounded<bf16>(master.get()));
}

TEST(MuonSteps, NormsBelowEpsilonAreNotBlownUp) {
  const Array<float> from(2, 2, {1e-9, 0, 0, 0}), squares(Numbers{1e-18}), to(2, 2);
  ops::normalize<float>(portable_context(), from.matrix(), squares.vector(), 1e-7, to.matrix());
  EXPECT_NEAR(static_cast<double>(to.get()[0]), 1e-2, 1e-8);
  EXPECT_EQ(to.get()[1], 0);
}

TEST(MuonSteps, ScaleOfZeroOrNaNSkips) {
  const NesterovCase c{100, 0.9};
  const StepsCase m{9, 31, false};
  for (const double scale : {0.0, std::nan("")}) {
    Named in = c.inputs(), matrices = m.inputs();
    in["scale"] = matrices["scale"] = {scale};
    const Named out = c.run<float>(in);
    EXPECT_EQ(out.at("buffer"), rounded<float>(in.at("buffer0")));
    EXPECT_EQ(out.at("direction"), rounded<float>(in.at("gradient")));
    EXPECT_EQ(m.run<float>(matrices).at("master"), rounded<float>(matrices.at("master0")));
  }
}

}  // namespace
}  // namespace tern::test
