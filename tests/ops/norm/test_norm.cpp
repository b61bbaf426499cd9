// RMSNorm and LayerNorm.
#include "ops/check.hpp"

namespace tern::test {
namespace {

struct NormCase {
  ops::Norm norm;
  std::size_t n, d;
  bool added;  // dx, to a gradient that it holds
  double mean = 0.5;
  double eps = 1e-3;

  bool centered() const { return norm == ops::Norm::layernorm; }

  Named inputs() const {
    Named in{{"x", normal_numbers(n * d, 1)},
             {"gain", normal_numbers(d, 2)},
             {"bias", normal_numbers(centered() ? d : 0, 3)},
             {"dy", normal_numbers(n * d, 4)},
             {"dx0", normal_numbers(n * d, 5)},
             {"dgain0", normal_numbers(d, 6)},
             {"dbias0", normal_numbers(centered() ? d : 0, 7)}};
    for (long double& x : in["x"]) x += mean;
    return in;
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const Array<T> x(n, d, in.at("x")), gain(in.at("gain")), bias(in.at("bias")),
        dy(n, d, in.at("dy")), y(n, d);
    Array<T> dx(n, d);
    if (added) dx.set(in.at("dx0"));
    const Array<A> mu(1, centered() ? n : 0), rstd(1, n), dgain(in.at("dgain0")),
        dbias(in.at("dbias0")), partial(1, ops::norm_partials(d));
    ops::norm_forward<T>(context, {.kind = norm,
                                   .x = x.matrix(),
                                   .gain = gain.vector(),
                                   .bias = bias.vector(),
                                   .eps = eps,
                                   .y = y.matrix(),
                                   .mean = mu.vector(),
                                   .rstd = rstd.vector()});
    ops::norm_backward<T>(context, {.kind = norm,
                                    .dy = dy.matrix(),
                                    .x = x.matrix(),
                                    .gain = gain.vector(),
                                    .mean = mu.vector(),
                                    .rstd = rstd.vector(),
                                    .dx = dx.matrix(),
                                    .residual = added ? dx.matrix() : Matrix<T>(),
                                    .dgain = dgain.vector(),
                                    .dbias = dbias.vector(),
                                    .partial = partial.vector()});
    return {{"y", y.get()},   {"mean", mu.get()},     {"rstd", rstd.get()},
            {"dx", dx.get()}, {"dgain", dgain.get()}, {"dbias", dbias.get()}};
  }

  template <class A>
  Named reference(const Named& in) const {
    Named out{{"y", Numbers(n * d)},      {"mean", Numbers(centered() ? n : 0)},
              {"rstd", Numbers(n)},       {"dx", Numbers(n * d)},
              {"dgain", in.at("dgain0")}, {"dbias", in.at("dbias0")}};
    const A count = static_cast<A>(d);
    for (std::size_t r = 0; r < n; ++r) {
      const long double *x = &in.at("x")[r * d], *dy = &in.at("dy")[r * d];
      A mu = 0, squares = 0, g = 0, gx = 0;
      if (centered()) {
        for (std::size_t i = 0; i < d; ++i) mu += A(x[i]);
        out["mean"][r] = mu = mu / count;
      }
      for (std::size_t i = 0; i < d; ++i) squares += (A(x[i]) - mu) * (A(x[i]) - mu);
      const A rstd = 1 / std::sqrt(squares / count + A(eps));
      out["rstd"][r] = rstd;
      for (std::size_t i = 0; i < d; ++i) {
        const A xhat = (A(x[i]) - mu) * rstd, gi = A(dy[i]) * A(in.at("gain")[i]);
        out["y"][r * d + i] =
            xhat * A(in.at("gain")[i]) + (centered() ? A(in.at("bias")[i]) : A(0));
        g += gi;
        gx += gi * xhat;
      }
      for (std::size_t i = 0; i < d; ++i) {
        const A xhat = (A(x[i]) - mu) * rstd, gi = A(dy[i]) * A(in.at("gain")[i]);
        const A dx = rstd * (gi - (centered() ? g / count : A(0)) - xhat * gx / count);
        out["dx"][r * d + i] = dx + (added ? A(in.at("dx0")[r * d + i]) : A(0));
        out["dgain"][i] = A(out["dgain"][i]) + A(dy[i]) * xhat;
        if (centered()) out["dbias"][i] = A(out["dbias"][i]) + A(dy[i]);
      }
    }
    return out;
  }
};

TEST(Norm, PrecisionAndRepetition) {
  const std::set<std::string> stored{"y", "dx"}, exact{"dgain0", "dbias0"};
  for (const ops::Norm norm : {ops::Norm::rmsnorm, ops::Norm::layernorm})
    for (const bool added : {false, true})
      for (const auto& [n, d] : {std::pair{131, 67}, {300, 2}, {1, 256}, {70, 33}, {2050, 20}}) {
        SCOPED_TRACE(testing::Message()
                     << "kind " << int(norm) << " added " << added << " " << n << " x " << d);
        const NormCase c{norm, std::size_t(n), std::size_t(d), added};
        check_precision<double>(c, c.inputs(), stored, exact);
        check_precision<float>(c, c.inputs(), stored, exact);
        check_precision<bf16>(c, c.inputs(), stored, exact);
        check_precision<fp16>(c, c.inputs(), stored, exact);
      }
}

TEST(Norm, Gradients) {
  for (const ops::Norm norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    const NormCase c{norm, 9, 11, false};
    const Named in = c.inputs();
    std::vector<std::pair<std::string, std::string>> pairs{{"x", "dx"}, {"gain", "dgain"}};
    if (c.centered()) pairs.push_back({"bias", "dbias"});
    check_gradients(c, in, "y", "dy", pairs,
                    {{"dgain", in.at("dgain0")}, {"dbias", in.at("dbias0")}});
  }
}

// A mean far from zero must not cancel the variance away.
TEST(Norm, LargeMean) {
  const NormCase c{ops::Norm::layernorm, 5, 100, false, 1000};
  check_precision<float>(c, c.inputs(), {"y", "dx"}, {"dgain0", "dbias0"});
}

/// As after sum(), but for the order in which rows are added up.
template <class T>
void expect_parts_are_summed(ops::Norm norm) {
  using A = Accumulate<T>;
  const std::size_t n = 21, d = 40;
  const auto& context = portable_context();
  const auto numbers = [&](int seed) { return Array<T>(n, d, normal_numbers(n * d, seed)); };
  const Array<T> a = numbers(1), b = numbers(2), c = numbers(3), dy = numbers(4), more = numbers(5);
  const Array<T> gain(normal_numbers(d, 6)), x(n, d), made(n, d), dsum(n, d);
  ops::sum<T>(context, a.matrix(), b.matrix(), c.matrix(), x.matrix());
  ops::sum<T>(context, dy.matrix(), more.matrix(), {}, dsum.matrix());
  const auto run = [&](Matrix<const T> input, const ops::PendingSum<T>& pending,
                       Matrix<const T> gradient, Matrix<const T> added) {
    const Numbers zeros(d);
    const Array<T> y(n, d), dx(n, d);
    const Array<A> mean(1, n), rstd(1, n), dgain(zeros), dbias(zeros);
    const Array<A> partial(1, ops::norm_partials(d));
    const bool centered = norm == ops::Norm::layernorm;
    ops::norm_forward<T>(context, {.kind = norm,
                                   .x = input,
                                   .gain = gain.vector(),
                                   .eps = 1e-5,
                                   .y = y.matrix(),
                                   .mean = centered ? mean.vector() : Vector<A>(),
                                   .rstd = rstd.vector(),
                                   .made = pending});
    ops::norm_backward<T>(context, {.kind = norm,
                                    .dy = gradient,
                                    .x = input,
                                    .gain = gain.vector(),
                                    .mean = mean.vector(),
                                    .rstd = rstd.vector(),
                                    .dx = dx.matrix(),
                                    .dgain = dgain.vector(),
                                    .dbias = centered ? dbias.vector() : Vector<A>(),
                                    .partial = partial.vector(),
                                    .dy_added = added});
    return Named{{"y", y.get()}, {"dx", dx.get()}, {"dgain", dgain.get()}, {"dbias", dbias.get()}};
  };
  const Named whole = run(x.matrix(), {}, dsum.matrix(), {});
  const Named parts = run(made.matrix(), {a.matrix(), b.matrix(), c.matrix(), made.matrix()},
                          dy.matrix(), more.matrix());
  EXPECT_EQ(made.get(), x.get());
  const long double bound = std::is_same_v<T, double> ? 1e-13L : 1e-2L;
  for (const auto& [name, wanted] : whole)
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(parts.at(name)[i], wanted[i], bound * (1 + std::abs(wanted[i]))) << name;
}

/// The gradient may take the place of the input, and be added to one that stays.
template <class T>
void expect_gradient_in_place_of_input(ops::Norm norm) {
  using A = Accumulate<T>;
  const std::size_t n = 21, d = 40;
  const auto numbers = [&](int seed) { return Array<T>(n, d, normal_numbers(n * d, seed)); };
  const Array<T> dy = numbers(1), residual = numbers(2), gain(normal_numbers(d, 3));
  const Array<A> mean(normal_numbers(n, 4)), rstd(normal_numbers(n, 5));
  const auto run = [&](bool in_place) {
    const Array<T> x = numbers(6), apart(n, d), &dx = in_place ? x : apart;
    const Numbers zeros(d);
    const Array<A> dgain(zeros), partial(1, ops::norm_partials(d));
    ops::norm_backward<T>(portable_context(), {.kind = norm,
                                               .dy = dy.matrix(),
                                               .x = x.matrix(),
                                               .gain = gain.vector(),
                                               .mean = mean.vector(),
                                               .rstd = rstd.vector(),
                                               .dx = dx.matrix(),
                                               .residual = residual.matrix(),
                                               .dgain = dgain.vector(),
                                               .partial = partial.vector()});
    return Named{{"dx", dx.get()}, {"dgain", dgain.get()}};
  };
  EXPECT_EQ(run(true), run(false));
  EXPECT_EQ(residual.get(), numbers(2).get());
}

TEST(Norm, GradientMayTakeThePlaceOfTheInput) {
  for (const ops::Norm norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    expect_gradient_in_place_of_input<double>(norm);
    expect_gradient_in_place_of_input<bf16>(norm);
  }
}

TEST(Norm, PartsOfInputAndGradientAreSummed) {
  for (const ops::Norm norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    expect_parts_are_summed<double>(norm);
    expect_parts_are_summed<bf16>(norm);
  }
}

}  // namespace
}  // namespace tern::test
