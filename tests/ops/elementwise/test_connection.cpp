// Connections with learned scalars, and table rows added to a part of a fused buffer.
#include <numeric>

#include "ops/check.hpp"

namespace tern::test {
namespace {

struct ConnectCase {
  std::size_t n, d;
  bool shortcut, skip;

  Named inputs() const {
    Named in{{"x", normal_numbers(n * d, 1)},    {"input", normal_numbers(n * d, 2)},
             {"skip", normal_numbers(n * d, 3)}, {"a", normal_numbers(1, 4)},
             {"b", normal_numbers(1, 5)},        {"c", normal_numbers(1, 6)},
             {"dy", normal_numbers(n * d, 7)},   {"dinput0", normal_numbers(n * d, 8)},
             {"da0", normal_numbers(1, 9)},      {"db0", normal_numbers(1, 10)},
             {"dc0", normal_numbers(1, 11)}};
    // Related to them, so that the sums of products do not cancel and errors stay relative to terms.
    for (std::size_t i = 0; i < n * d; ++i)
      in["dy"][i] += in["x"][i] + in["input"][i] + in["skip"][i];
    return in;
  }

  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    const auto matrix = [&](const char* name) { return Array<T>(n, d, in.at(name)); };
    const Array<T> x = matrix("x"), input = matrix("input"), other = matrix("skip"),
                   dy = matrix("dy"), dinput = matrix("dinput0"), y(n, d), dskip(n, d);
    const Array<T> a(in.at("a")), b(in.at("b")), c(in.at("c"));
    const Array<A> da(in.at("da0")), db(in.at("db0")), dc(in.at("dc0")),
        partial(1, ops::connect_partials());
    const Vector<const T> none;
    const Vector<const T> of_x = shortcut ? Vector<const T>(a.vector()) : none,
                          of_input = shortcut ? Vector<const T>(b.vector()) : none,
                          of_skip = skip ? Vector<const T>(c.vector()) : none;
    ops::run(context, ops::ConnectForward<T>{.x = x.matrix(),
                                             .input = input.matrix(),
                                             .skip = other.matrix(),
                                             .a = of_x,
                                             .b = of_input,
                                             .c = of_skip,
                                             .y = y.matrix()});
    ops::run(context, ops::ConnectBackward<T>{
                          .x = x.matrix(),
                          .input = input.matrix(),
                          .skip = other.matrix(),
                          .a = of_x,
                          .b = of_input,
                          .c = of_skip,
                          .dy = dy.matrix(),
                          .dinput = dinput.matrix(),
                          .dskip = dskip.matrix(),
                          .da = da.vector(),
                          .db = db.vector(),
                          .dc = dc.vector(),
                          .partial = Vector<A>(partial.matrix().data(), ops::connect_partials())});
    Named out{{"y", y.get()},   {"dx", dy.get()}, {"dinput", dinput.get()},
              {"da", da.get()}, {"db", db.get()}, {"dc", dc.get()}};
    if (skip) out["dskip"] = dskip.get();
    return out;
  }

  template <class A>
  Named reference(const Named& in) const {
    const A a = shortcut ? A(in.at("a")[0]) : A(1), b = shortcut ? A(in.at("b")[0]) : A(0),
            c = skip ? A(in.at("c")[0]) : A(0);
    Named out{{"y", Numbers(n * d)}, {"dx", Numbers(n * d)}, {"dinput", in.at("dinput0")},
              {"da", in.at("da0")},  {"db", in.at("db0")},   {"dc", in.at("dc0")}};
    A da = 0, db = 0, dc = 0;
    if (skip) out["dskip"] = Numbers(n * d);
    for (std::size_t i = 0; i < n * d; ++i) {
      const A x = A(in.at("x")[i]), input = A(in.at("input")[i]), other = A(in.at("skip")[i]),
              dy = A(in.at("dy")[i]);
      out["y"][i] = a * x + b * input + c * other;
      out["dx"][i] = a * dy;
      if (shortcut) out["dinput"][i] = A(out["dinput"][i]) + b * dy;
      if (skip) out["dskip"][i] = c * dy;
      da += shortcut ? dy * x : A(0), db += shortcut ? dy * input : A(0);
      dc += skip ? dy * other : A(0);
    }
    out["da"][0] = A(out["da"][0]) + da, out["db"][0] = A(out["db"][0]) + db;
    out["dc"][0] = A(out["dc"][0]) + dc;
    return out;
  }
};

const ConnectCase connections[] = {
    {1, 1, true, true}, {37, 33, true, true}, {130, 64, true, false}, {70, 48, false, true}};
const std::set<std::string> exact{"dinput0", "da0", "db0", "dc0"};

TEST(Connect, PrecisionAndRepetition) {
  for (const ConnectCase& c : connections) {
    SCOPED_TRACE(testing::Message() << c.n << " x " << c.d);
    const std::set<std::string> stored{"y", "dx", "dinput", "dskip"};
    check_precision<double>(c, c.inputs(), stored, exact);
    check_precision<float>(c, c.inputs(), stored, exact);
    check_precision<bf16>(c, c.inputs(), stored, exact);
  }
}

TEST(Connect, Gradients) {
  const ConnectCase c{7, 5, true, true};
  const Named in = c.inputs();
  check_gradients(
      c, in, "y", "dy",
      {{"x", "dx"}, {"input", "dinput"}, {"skip", "dskip"}, {"a", "da"}, {"b", "db"}, {"c", "dc"}},
      {{"dinput", in.at("dinput0")},
       {"da", in.at("da0")},
       {"db", in.at("db0")},
       {"dc", in.at("dc0")}});
}

struct ScaledRowsCase {
  std::size_t n, w, v, before, after;  // columns before and after the W of the fused buffer

  std::size_t width() const { return before + w + after; }
  Named inputs() const {
    Named in{{"tokens", Numbers(n)},
             {"table", normal_numbers(v * w, 1)},
             {"scale", normal_numbers(1, 2)},
             {"fused", normal_numbers(n * width(), 3)},
             {"dy", normal_numbers(n * width(), 4)},
             {"dscale0", normal_numbers(1, 5)}};
    for (std::size_t i = 0; i < n; ++i)
      in["tokens"][i] = double(philox(3, Stream::test, 0, 0, std::uint32_t(i)).word[0] % v);
    return in;
  }
  template <class T>
  Named run(const Named& in) const {
    using A = Accumulate<T>;
    const auto& context = portable_context();
    Numbers order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](long double a, long double b) {
      return in.at("tokens")[std::size_t(a)] < in.at("tokens")[std::size_t(b)];
    });
    const Array<std::int32_t> tokens(in.at("tokens")), sorted(order);
    const Array<T> table(v, w, in.at("table")), scale(in.at("scale")),
        fused(n, width(), in.at("fused")), dy(n, width(), in.at("dy")), drows(n, w);
    const Array<A> dscale(in.at("dscale0")), partial(1, ops::connect_partials()),
        dtable(v, w, Numbers(v * w, 0));
    ops::run(context, ops::AddScaledRows<T>{.tokens = tokens.vector(),
                                            .table = table.matrix(),
                                            .scale = scale.vector(),
                                            .fused = fused.matrix(),
                                            .first = before});
    ops::run(context, ops::ScaledRowsBackward<T>{
                          .tokens = tokens.vector(),
                          .table = table.matrix(),
                          .scale = scale.vector(),
                          .dfused = dy.matrix(),
                          .first = before,
                          .drows = drows.matrix(),
                          .dscale = dscale.vector(),
                          .partial = Vector<A>(partial.matrix().data(), ops::connect_partials())});
    ops::run(context, ops::EmbeddingBackward<T>{.tokens = tokens.vector(),
                                                .order = sorted.vector(),
                                                .dx = drows.matrix(),
                                                .tokens_per_sequence = n,
                                                .dtable = dtable.matrix()});
    return {{"y", fused.get()},
            {"drows", drows.get()},
            {"dscale", dscale.get()},
            {"dtable", dtable.get()}};
  }
  template <class A>
  Named reference(const Named& in) const {
    Named out{{"y", in.at("fused")},
              {"drows", Numbers(n * w)},
              {"dscale", in.at("dscale0")},
              {"dtable", Numbers(v * w, 0)}};
    const A scale = A(in.at("scale")[0]);
    A dscale = 0;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < w; ++i) {
        const auto token = static_cast<std::size_t>(in.at("tokens")[r]);
        const std::size_t at = r * width() + before + i;
        const A row = A(in.at("table")[token * w + i]), dy = A(in.at("dy")[at]);
        out["y"][at] = A(out["y"][at]) + scale * row;
        out["drows"][r * w + i] = scale * dy;
        dscale += dy * row;
        long double& to = out["dtable"][token * w + i];
        to = A(to) + scale * dy;
      }
    out["dscale"][0] = A(out["dscale"][0]) + dscale;
    return out;
  }
};

TEST(ScaledRows, PrecisionAndRepetition) {
  for (const ScaledRowsCase& c : {ScaledRowsCase{1, 1, 1, 0, 0}, {37, 33, 5, 66, 0}}) {
    SCOPED_TRACE(testing::Message() << c.n << " x " << c.w);
    check_precision<double>(c, c.inputs(), {"y", "drows"}, {"tokens", "dscale0"});
    check_precision<float>(c, c.inputs(), {"y", "drows"}, {"tokens", "dscale0"});
  }
}

TEST(ScaledRows, Gradients) {
  const ScaledRowsCase c{9, 4, 3, 8, 0};
  const Named in = c.inputs();
  check_gradients(c, in, "y", "dy", {{"table", "dtable"}, {"scale", "dscale"}},
                  {{"dscale", in.at("dscale0")}, {"dtable", Numbers(12, 0)}});
}

}  // namespace
}  // namespace tern::test
