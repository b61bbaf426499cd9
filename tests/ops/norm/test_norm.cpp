// RMSNorm and LayerNorm.
#include "checks/cases/norm.hpp"
#include "ops/check.hpp"

namespace tern::test {
namespace {

using Place = checks::NormCase::Place;
using With = checks::NormCase::With;

struct NormTest : checks::NormCase {
  double mean = 0.5;

  bool added() const { return place == Place::residual; }

  Named inputs() const {
    Named in{{"x", normal_numbers(N * D, 1)},   {"gain", normal_numbers(D, 2)},
             {"bias", normal_numbers(D, 3)},    {"dy", normal_numbers(N * D, 4)},
             {"dx0", normal_numbers(N * D, 5)}, {"dgain0", normal_numbers(D, 6)},
             {"dbias0", normal_numbers(D, 7)}};
    for (long double& x : in["x"]) x += mean;
    return in;
  }

  template <class T>
  Named run(const Named& in) const {
    return results_of<T, NormCase>(*this, in);
  }

  template <class A>
  Named reference(const Named& in) const {
    const std::size_t n = N, d = D;
    Named out{{"y", Numbers(n * d)},
              {"rstd", Numbers(n)},
              {"dx", Numbers(n * d)},
              {"dgain", in.at("dgain0")}};
    if (centered()) out["mean"] = Numbers(n), out["dbias"] = in.at("dbias0");
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
        out["dx"][r * d + i] = dx + (added() ? A(in.at("dx0")[r * d + i]) : A(0));
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
    for (const Place place : {Place::anywhere, Place::residual})
      for (const auto& [n, d] : {std::pair{131, 67}, {300, 2}, {1, 256}, {70, 33}, {2050, 20}}) {
        SCOPED_TRACE(testing::Message()
                     << "kind " << int(norm) << " place " << int(place) << " " << n << " x " << d);
        const NormTest c{{norm, std::size_t(n), std::size_t(d), place, {}, 1e-3}};
        check_precision<double>(c, c.inputs(), stored, exact);
        check_precision<float>(c, c.inputs(), stored, exact);
        check_precision<bf16>(c, c.inputs(), stored, exact);
        check_precision<fp16>(c, c.inputs(), stored, exact);
      }
}

TEST(Norm, Gradients) {
  for (const ops::Norm norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    const NormTest c{{norm, 9, 11, Place::anywhere, {}, 1e-3}};
    const Named in = c.inputs();
    std::vector<std::pair<std::string, std::string>> pairs{{"x", "dx"}, {"gain", "dgain"}};
    if (c.centered()) pairs.push_back({"bias", "dbias"});
    check_gradients(c, in, "y", "dy", pairs,
                    {{"dgain", in.at("dgain0")}, {"dbias", in.at("dbias0")}});
  }
}

// A mean far from zero must not cancel the variance away.
TEST(Norm, LargeMean) {
  const NormTest c{{ops::Norm::layernorm, 5, 100, Place::anywhere, {}, 1e-3}, 1000};
  check_precision<float>(c, c.inputs(), {"y", "dx"}, {"dgain0", "dbias0"});
}

/// As after Sum, but for the order in which rows are added up.
template <class T>
void expect_parts_are_summed(ops::Norm norm) {
  const std::size_t n = 21, d = 40;
  const auto numbers = [&](int seed) { return rounded<T>(normal_numbers(n * d, seed)); };
  const auto sum = [&](std::vector<Numbers> terms) {
    terms.resize(3);
    std::vector<Array<T>> arrays;
    for (const Numbers& term : terms) arrays.emplace_back(term.empty() ? 0 : n, d, term);
    const Array<T> to(n, d);
    ops::run(portable_context(), ops::Sum<T>{.a = arrays[0].matrix(),
                                             .b = arrays[1].matrix(),
                                             .c = arrays[2].matrix(),
                                             .to = to.matrix()});
    return to.get();
  };
  Named in{{"a", numbers(1)},    {"b", numbers(2)},        {"c", numbers(3)},
           {"dy", numbers(4)},   {"dy_added", numbers(5)}, {"gain", normal_numbers(d, 6)},
           {"bias", Numbers(d)}, {"dgain0", Numbers(d)},   {"dbias0", Numbers(d)}};
  Named parts = results_of<T>(checks::NormCase{norm, n, d, Place::anywhere, With::sums}, in);
  in["x"] = sum({in["a"], in["b"], in["c"]});
  in["dy"] = sum({in["dy"], in["dy_added"]});
  const Named whole = results_of<T>(checks::NormCase{norm, n, d}, in);
  EXPECT_EQ(parts.at("x"), in["x"]);
  const long double bound = std::is_same_v<T, double> ? 1e-13L : 1e-2L;
  for (const auto& [name, wanted] : whole)
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(parts.at(name)[i], wanted[i], bound * (1 + std::abs(wanted[i]))) << name;
}

/// The gradient may take the place of the input, and be added to one that stays.
template <class T>
void expect_gradient_in_place_of_input(ops::Norm norm) {
  const std::size_t n = 21, d = 40;
  Named in{{"dy", normal_numbers(n * d, 1)},
           {"residual", normal_numbers(n * d, 2)},
           {"gain", normal_numbers(d, 3)},
           {"bias", normal_numbers(d, 4)},
           {"x", normal_numbers(n * d, 6)},
           {"dgain0", Numbers(d)},
           {"dbias0", Numbers(d)}};
  in["dx0"] = in["x"];
  const Named in_place = results_of<T>(checks::NormCase{norm, n, d, Place::input}, in);
  in["dx0"] = in["residual"];
  EXPECT_EQ(results_of<T>(checks::NormCase{norm, n, d, Place::residual}, in), in_place);
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
