// AdamW's update and the clipping factor.
#include "ops/check.hpp"

namespace tern::test {
namespace {

struct AdamWCase {
  std::size_t n;
  double weight_decay;
  int steps = 5;

  Named inputs() const {
    Named in{{"master0", normal_numbers(n, 1)},
             {"m0", Numbers(n, 0.0)},
             {"v0", Numbers(n, 0.0)},
             {"scale", {0.75}}};
    for (int s = 1; s <= steps; ++s)
      in["gradient" + std::to_string(s)] = normal_numbers(n, 10 + std::uint32_t(s), 1e-2);
    return in;
  }
  ops::AdamW options(int step) const { return {1e-2, 0.9, 0.95, 1e-8, weight_decay, step}; }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const Array<A> master(in.at("master0")), m(in.at("m0")), v(in.at("v0")), scale(in.at("scale"));
    const Array<T> copy(1, n);
    for (int s = 1; s <= steps; ++s) {
      const Array<A> gradient(in.at("gradient" + std::to_string(s)));
      ops::run(portable_context(), ops::AdamWUpdate<T>{.rule = options(s),
                                                       .master = master.vector(),
                                                       .gradient = gradient.vector(),
                                                       .gradient_scale = scale.vector(),
                                                       .m = m.vector(),
                                                       .v = v.vector(),
                                                       .copy = copy.vector()});
    }
    return {{"master", master.get()}, {"m", m.get()}, {"v", v.get()}, {"copy", copy.get()}};
  }

  template <class A>
  Named reference(const Named& in) const {
    Named out{{"master", in.at("master0")}, {"m", in.at("m0")}, {"v", in.at("v0")}};
    for (int s = 1; s <= steps; ++s) {
      const ops::AdamW o = options(s);
      const A b1 = A(o.beta1), b2 = A(o.beta2), lr = A(o.lr);
      const A c1 = 1 - A(std::pow(o.beta1, s)), c2 = 1 - A(std::pow(o.beta2, s));
      for (std::size_t i = 0; i < n; ++i) {
        const A g = A(in.at("gradient" + std::to_string(s))[i]) * A(in.at("scale")[0]);
        const A m = b1 * A(out["m"][i]) + (1 - b1) * g, v = b2 * A(out["v"][i]) + (1 - b2) * g * g;
        A w = A(out["master"][i]);
        w -= lr * A(o.weight_decay) * w;
        w -= lr * (m / c1) / (std::sqrt(v / c2) + A(o.eps));
        out["m"][i] = m, out["v"][i] = v, out["master"][i] = w;
      }
    }
    out["copy"] = out["master"];
    return out;
  }
};

const std::set<std::string> exact{"master0",   "m0",        "v0",        "scale",    "gradient1",
                                  "gradient2", "gradient3", "gradient4", "gradient5"};

TEST(AdamW, PrecisionAndRepetition) {
  for (const std::size_t n : {1, 77, 5001})
    for (const double decay : {0.0, 0.1}) {
      const AdamWCase c{n, decay};
      check_precision<double>(c, c.inputs(), {"copy"}, exact);
      check_precision<float>(c, c.inputs(), {"copy"}, exact);
      check_precision<bf16>(c, c.inputs(), {"copy"}, exact);
      check_precision<fp16>(c, c.inputs(), {"copy"}, exact);
    }
}

// The copy may be absent, or the master itself.
TEST(AdamW, CopyIsOptional) {
  const AdamWCase c{100, 0.1, 1};
  const Named in = c.inputs(), with = c.run<float>(in);
  for (const bool itself : {false, true}) {
    const Array<float> master(in.at("master0")), m(in.at("m0")), v(in.at("v0")),
        scale(in.at("scale")), gradient(in.at("gradient1"));
    ops::run(portable_context(),
             ops::AdamWUpdate<float>{.rule = c.options(1),
                                     .master = master.vector(),
                                     .gradient = gradient.vector(),
                                     .gradient_scale = scale.vector(),
                                     .m = m.vector(),
                                     .v = v.vector(),
                                     .copy = itself ? master.vector() : Vector<float>()});
    EXPECT_EQ(master.get(), with.at("master"));
  }
}

TEST(AdamW, ScaleOfZeroOrNaNSkips) {
  const AdamWCase c{100, 0.1, 1};
  for (const double scale : {0.0, std::nan("")}) {
    Named in = c.inputs();
    in["scale"] = {scale};
    in["gradient1"][7] = std::nan("");
    const Named out = c.run<float>(in);
    EXPECT_EQ(out.at("master"), rounded<float>(in.at("master0")));
    EXPECT_EQ(out.at("m"), in.at("m0"));
    EXPECT_EQ(out.at("v"), in.at("v0"));
  }
}

TEST(ClipScale, LimitsTheNorm) {
  const auto clip = [](double squares, double limit, double loss_scale = 1) {
    const Array<float> s(Numbers{squares}), scale(1, 1), norm(1, 1);
    ops::run(portable_context(), ops::ClipScale<float>{.squares = s.vector(),
                                                       .limit = limit,
                                                       .loss_scale = loss_scale,
                                                       .scale = scale.vector(),
                                                       .norm = norm.vector()});
    return std::pair(scale.get()[0], norm.get()[0]);
  };
  EXPECT_EQ(clip(16, 1), std::pair(0.25L, 4.0L));
  EXPECT_EQ(clip(16, 5), std::pair(1.0L, 4.0L));
  EXPECT_EQ(clip(16, 0), std::pair(1.0L, 4.0L));
  EXPECT_EQ(clip(0, 1), std::pair(1.0L, 0.0L));
  EXPECT_EQ(clip(16 * 64, 1, 8), std::pair(0.25L / 8, 4.0L));
  EXPECT_EQ(clip(16 * 64, 5, 8), std::pair(1.0L / 8, 4.0L));
  EXPECT_EQ(clip(INFINITY, 1).first, 0);
  EXPECT_EQ(clip(std::nan(""), 1).first, 0);
  EXPECT_EQ(clip(std::nan(""), 0).first, 0);
}

}  // namespace
}  // namespace tern::test
