// The elementwise steps of Muon: momentum, normalization, polynomial, descent.
#include "base/error.hpp"
#include "ops/check.hpp"
#include "ops/ops.hpp"

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
    ops::run(portable_context(), ops::Nesterov<A>{.momentum = momentum,
                                                  .gradient = gradient.vector(),
                                                  .gradient_scale = scale.vector(),
                                                  .buffer = buffer.vector()});
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

/// Some matrices in a span, the last one first, with gaps between them.
struct Places {
  std::size_t count, elements;

  std::size_t stride() const { return elements + 3; }
  std::size_t span() const { return count * stride() + 5; }
  std::size_t of(std::size_t i) const { return (count - 1 - i) * stride() + 5; }
  Kokkos::View<std::size_t*, DeviceMemory> on_device() const {
    Kokkos::View<std::size_t*, DeviceMemory> at("places", count);
    const auto host = Kokkos::create_mirror_view(at);
    for (std::size_t i = 0; i < count; ++i) host(i) = of(i);
    Kokkos::deep_copy(at, host);
    return at;
  }
};

template <class T>
Tensor3<T> three(const Array<T>& a, std::size_t count, std::size_t rows) {
  const auto m = a.vector();
  return Tensor3<T>(m.data(), count, rows, m.size() / (count * rows));
}

/// Normalization of the matrices of a span, and descent along x.
struct StepsCase {
  std::size_t count, rows, columns;

  Places places() const { return {count, rows * columns}; }
  Named inputs() const {
    const std::size_t n = places().span();
    return {{"span", normal_numbers(n, 1)},
            {"x", normal_numbers(count * rows * columns, 2)},
            {"master0", normal_numbers(n, 3)},
            {"copy0", normal_numbers(n, 4)},
            {"scale", {0.5}}};
  }
  template <class T, class S = T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const auto at = places().on_device();
    const Array<A> span(in.at("span")), master(in.at("master0")), scale(in.at("scale")),
        squares(1, count);
    const Array<S> x(in.at("x"));
    const Array<T> unit(1, in.at("x").size()), copy(in.at("copy0"));
    ops::run(context, ops::SumsOfSquares<A>{.span = span.vector(),
                                            .at = at,
                                            .elements = rows * columns,
                                            .squares = squares.vector()});
    ops::run(context, ops::Normalize<T>{.span = span.vector(),
                                        .at = at,
                                        .squares = squares.vector(),
                                        .eps = 1e-7,
                                        .to = three(unit, count, rows)});
    ops::run(context, ops::Descent<T, S>{.keep = 0.75,
                                         .step = 0.02,
                                         .direction = three(x, count, rows),
                                         .at = at,
                                         .gradient_scale = scale.vector(),
                                         .master = master.vector(),
                                         .copy = copy.vector()});
    return {{"squares", squares.get()},
            {"unit", unit.get()},
            {"master", master.get()},
            {"copy", copy.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"squares", Numbers(count)},
              {"unit", Numbers(in.at("x").size())},
              {"master", in.at("master0")},
              {"copy", in.at("copy0")}};
    for (std::size_t m = 0; m < count; ++m) {
      A squares = 0;
      for (std::size_t i = 0; i < rows * columns; ++i)
        squares += A(in.at("span")[places().of(m) + i]) * A(in.at("span")[places().of(m) + i]);
      out["squares"][m] = squares;
      for (std::size_t i = 0; i < rows * columns; ++i) {
        const std::size_t place = places().of(m) + i, dense = m * rows * columns + i;
        out["unit"][dense] = A(in.at("span")[place]) / std::sqrt(squares);
        out["copy"][place] = out["master"][place] =
            A(0.75) * A(in.at("master0")[place]) - A(0.02) * A(in.at("x")[dense]);
      }
    }
    return out;
  }
};

TEST(MuonSteps, OfMatrices) {
  for (const StepsCase& c : {StepsCase{1, 9, 31}, StepsCase{3, 31, 9}, StepsCase{2, 90, 65}}) {
    const std::set<std::string> exact{"span", "master0", "scale"}, stored{"unit", "copy"};
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
    check_precision<fp16>(c, c.inputs(), stored, exact);
  }
}

// The gaps between the matrices are unchanged.
TEST(MuonSteps, DescentTouchesTheMatricesAlone) {
  const StepsCase c{3, 5, 7};
  const Named in = c.inputs(), out = c.run<float>(in);
  std::vector<bool> inside(c.places().span());
  for (std::size_t m = 0; m < c.count; ++m)
    for (std::size_t i = 0; i < 35; ++i) inside[c.places().of(m) + i] = true;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    EXPECT_EQ(out.at("master")[i] == rounded<float>(in.at("master0"))[i], !inside[i]) << i;
    EXPECT_EQ(out.at("copy")[i] == rounded<float>(in.at("copy0"))[i], !inside[i]) << i;
  }
}

// Each result equals that of the matrix by itself, with more matrices than are summed at a time, or
// summed in parts.
TEST(MuonSteps, SquaresDoNotDependOnTheBatch) {
  for (const Places& many : {Places{1030, 7}, Places{3, 50000}}) {
    const Array<float> span(normal_numbers(many.span(), 1)), all(1, many.count);
    const auto at = many.on_device();
    ops::run(
        portable_context(),
        ops::SumsOfSquares<float>{
            .span = span.vector(), .at = at, .elements = many.elements, .squares = all.vector()});
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, many.count - 1}) {
      const Array<float> one(1, 1);
      ops::run(portable_context(),
               ops::SumsOfSquares<float>{.span = span.vector(),
                                         .at = Vector<const std::size_t>(at.data() + i, 1),
                                         .elements = many.elements,
                                         .squares = one.vector()});
      EXPECT_EQ(one.get()[0], all.get()[i]) << i;
      EXPECT_GT(one.get()[0], 0);
    }
  }
}

// A direction in float32 with masters that have bf16 copies, as on the host.
TEST(MuonSteps, DirectionOfAnotherType) {
  const StepsCase c{2, 9, 31};
  const Named in = c.inputs(), truth = c.reference<long double>(in);
  const Named out = c.run<bf16, float>(in);
  EXPECT_LE(relative_error(out.at("master"), truth.at("master")), 1e-6);
  EXPECT_EQ(out.at("copy")[5], rounded<bf16>(out.at("master"))[5]);
  EXPECT_LE(relative_error(out.at("copy"), rounded<bf16>(truth.at("copy"))), 1e-3);
}

TEST(MuonSteps, NormsBelowEpsilonAreNotBlownUp) {
  const Array<float> span(Numbers{1e-9, 0, 0, 0}), squares(Numbers{1e-18}), to(2, 2);
  const Kokkos::View<std::size_t*, DeviceMemory> at("place", 1);
  ops::run(portable_context(), ops::Normalize<float>{.span = span.vector(),
                                                     .at = at,
                                                     .squares = squares.vector(),
                                                     .eps = 1e-7,
                                                     .to = three(to, 1, 2)});
  EXPECT_NEAR(static_cast<double>(to.get()[0]), 1e-2, 1e-8);
  EXPECT_EQ(to.get()[1], 0);
}

/// d = alpha op(a) op(b) + beta c for each of some matrices.
struct ProductCase {
  std::size_t count, rows, inner, columns;
  bool transpose_a, transpose_b;
  double alpha, beta;

  Named inputs() const {
    return {{"a", normal_numbers(count * rows * inner, 1)},
            {"b", normal_numbers(count * inner * columns, 2)},
            {"c", normal_numbers(count * rows * columns, 3)}};
  }
  template <class T>
  Named run(const Named& in) const {
    const Array<T> a(in.at("a")), b(in.at("b")), c(in.at("c")), d(1, in.at("c").size());
    ops::run(
        portable_context(),
        ops::BatchedProduct<T>{.alpha = alpha,
                               .a = {three(a, count, transpose_a ? inner : rows), transpose_a},
                               .b = {three(b, count, transpose_b ? columns : inner), transpose_b},
                               .beta = beta,
                               .c = beta != 0 ? three(c, count, rows) : Tensor3<T>{},
                               .d = three(d, count, rows)});
    return {{"d", d.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"d", Numbers(in.at("c").size())}};
    for (std::size_t m = 0; m < count; ++m)
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
          A sum = 0;
          for (std::size_t k = 0; k < inner; ++k) {
            const std::size_t left = transpose_a ? k * rows + i : i * inner + k;
            const std::size_t right = transpose_b ? j * inner + k : k * columns + j;
            sum +=
                A(in.at("a")[m * rows * inner + left]) * A(in.at("b")[m * inner * columns + right]);
          }
          const std::size_t to = (m * rows + i) * columns + j;
          out["d"][to] = A(alpha) * sum + A(beta) * A(in.at("c")[to]);
        }
    return out;
  }
};

TEST(MuonSteps, BatchedProducts) {
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      for (const ProductCase& c :
           {ProductCase{3, 17, 40, 9, a, b, 1, 0}, ProductCase{2, 66, 70, 130, a, b, 2, -4.75}}) {
        check_precision<double>(c, c.inputs(), {"d"});
        check_precision<float>(c, c.inputs(), {"d"});
        check_precision<bf16>(c, c.inputs(), {"d"});
        check_precision<fp16>(c, c.inputs(), {"d"});
      }
}

TEST(MuonSteps, ProductsOfOtherShapesAreRefused) {
  const Array<float> x(6, 4), y(6, 2);
  const auto tall = three(x, 2, 3), flat = three(y, 2, 3);
  const auto make = [&](ops::Factor<float> a, ops::Factor<float> b, Tensor3<const float> added) {
    ops::run(portable_context(), ops::BatchedProduct<float>{
                                     .alpha = 1, .a = a, .b = b, .beta = 1, .c = added, .d = flat});
  };
  EXPECT_THROW(make({tall}, {tall}, flat), InternalError);
  EXPECT_THROW(make({tall}, {flat}, flat), InternalError);
  EXPECT_THROW(make({three(x, 3, 2)}, {three(y, 2, 3)}, flat), InternalError);
  EXPECT_THROW(make({three(y, 2, 3)}, {three(Array<float>(2, 4), 2, 2)}, tall), InternalError);
}

TEST(MuonSteps, ScaleOfZeroOrNaNSkips) {
  const NesterovCase c{100, 0.9};
  const StepsCase m{2, 9, 31};
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
