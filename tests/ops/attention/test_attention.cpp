// Attention compared with its definition, for many shapes and patterns and in every storage type;
// with PyTorch; with finite differences; repetition bit for bit.
#include <gtest/gtest.h>

#include "attention_reference.hpp"
#include "base/error.hpp"
#include "golden/golden.hpp"
#include "ops/ops.hpp"

namespace tern {
namespace {
using namespace test;
using ops::Pattern;

const Pattern full{Pattern::Kind::full, 0}, causal{Pattern::Kind::causal, 0};
Pattern causal_from(int offset) { return {Pattern::Kind::causal, offset}; }

std::string describe(const AttentionCase& c) {
  return fmt::format("B {} Tq {} Tk {} H {} K {} E {} {} offset {}", c.batch, c.queries, c.keys,
                     c.heads, c.kv_heads, c.size,
                     c.pattern.kind == Pattern::Kind::full     ? "full"
                     : c.pattern.kind == Pattern::Kind::causal ? "causal"
                                                               : "spans",

                     c.pattern.query_offset);
}

/// One case on the device: inputs, results.
template <class T>
struct OnDevice {
  using A = Accumulate<T>;
  explicit OnDevice(const AttentionCase& shape, double deviation = 1)
      : c(shape),
        scale(1 / std::sqrt(static_cast<double>(c.size))),
        q(c.batch, c.queries, c.heads, c.size, 0, 2 * c.size),
        k(c.batch, c.keys, c.kv_heads, c.size, 3, 2),
        v(c.batch, c.keys, c.kv_heads, c.size, c.size, 0),
        out(c.batch, c.queries, c.heads, c.size),
        dout(c.batch, c.queries, c.heads, c.size),
        dq(c.batch, c.queries, c.heads, c.size, 1, 1),
        dk(c.batch, c.keys, c.kv_heads, c.size, 3, 2),
        dv(c.batch, c.keys, c.kv_heads, c.size),
        lse(c.batch * c.heads, c.queries),
        delta(c.batch * c.heads, c.queries) {
    q.fill(1, deviation), k.fill(2, deviation), v.fill(3), dout.fill(4);
    spoil_results();
  }
  /// Previous contents must not matter.
  void spoil_results() {
    for (Tensor<T>* x : {&out, &dq, &dk, &dv}) {
      std::fill(x->host.begin(), x->host.end(), std::nan(""));
      x->upload();
    }
  }
  void forward() {
    ops::run(context, ops::AttentionForward<T>{.pattern = c.pattern,
                                               .scale = scale,
                                               .q = q.view(),
                                               .k = k.view(),
                                               .v = v.view(),
                                               .out = out.view(),
                                               .lse = lse.view()});
    context.fence("test");
    out.download();
  }
  void backward() {
    ops::run(context, ops::AttentionBackward<T>{.pattern = c.pattern,
                                                .scale = scale,
                                                .q = q.view(),
                                                .k = k.view(),
                                                .v = v.view(),
                                                .out = out.view(),
                                                .dout = dout.view(),
                                                .lse = lse.view(),
                                                .delta = delta.view(),
                                                .dq = dq.view(),
                                                .dk = dk.view(),
                                                .dv = dv.view()});
    context.fence("test");
    dq.download(), dk.download(), dv.download();
  }
  template <class Arithmetic, class Stored>
  DenseAttention reference() const {
    return dense_attention<Arithmetic, Stored>(c, scale, q.host, k.host, v.host, dout.host);
  }
  /// The definition in a precision above that of T.
  DenseAttention truth() const {
    using Above = std::conditional_t<std::is_same_v<T, double>, long double, double>;
    return reference<Above, Above>();
  }
  AttentionCase c;
  double scale;
  Tensor<T> q, k, v, out, dout, dq, dk, dv;
  Statistics<A> lse, delta;
  ops::Context context;
};

/// Head sizes of all kinds; tiles that fill and tiles that do not; grouped queries; generation;
/// more queries than keys; queries that see nothing (negative offset).
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list;
  for (int size : {1, 2, 3, 7, 8, 16, 17, 32, 64, 80, 96, 128, 256})
    for (const Pattern& pattern : {full, causal}) list.push_back({2, 37, 37, 2, 1, size, pattern});
  for (int tokens : {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200})
    for (const Pattern& pattern : {full, causal})
      list.push_back({1, tokens, tokens, 2, 2, 24, pattern});
  for (int kv_heads : {1, 2, 3, 6}) list.push_back({2, 70, 70, 6, kv_heads, 16, causal});
  for (int keys : {1, 5, 64, 65, 300})
    list.push_back({2, 1, keys, 4, 2, 64, causal_from(keys - 1)});
  // Many key heads: on the host the pass over the keys also computes dq.
  for (int size : {16, 32, 48, 64}) list.push_back({4, 90, 90, 4, 2, size, causal});
  for (int tokens : {63, 130, 600}) list.push_back({3, tokens, tokens, 2, 2, 16, causal});
  list.push_back({5, 70, 41, 3, 1, 80, full});
  list.push_back({4, 33, 150, 2, 1, 16, causal_from(117)});
  list.push_back({4, 100, 100, 2, 1, 16, causal_from(-70)});
  list.push_back({2, 1, 129, 4, 2, 33, full});
  list.push_back({1, 7, 100, 2, 1, 16, causal_from(93)});
  list.push_back({1, 90, 140, 2, 1, 16, causal_from(50)});
  list.push_back({1, 140, 90, 2, 1, 16, causal});
  list.push_back({1, 140, 90, 2, 1, 16, full});
  list.push_back({2, 100, 100, 2, 1, 16, causal_from(-70)});
  list.push_back({1, 3, 100, 2, 1, 16, causal_from(-3)});
  return list;
}

/// No worse than twice the error that the definition has in the same precision; but at least twice
/// the rounding of a dot product, which may cancel in the definition (a softmax over one key).
double bar(const std::vector<double>& same_precision, const std::vector<double>& truth,
           double epsilon) {
  return 2 * std::fmax(attention_error(same_precision, truth), epsilon);
}

template <class T>
class Attention : public testing::Test {};
using StorageTypes = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(Attention, StorageTypes);

template <class T>
void expect_definition(const AttentionCase& c) {
  using A = Accumulate<T>;
  SCOPED_TRACE(describe(c));
  const double epsilon = std::numeric_limits<A>::epsilon() * std::fmax(1, std::sqrt(c.size) / 2);
  OnDevice<T> run(c);
  run.forward();
  run.backward();
  const DenseAttention truth = run.truth();
  const DenseAttention same = run.template reference<A, T>();
  EXPECT_LE(attention_error(run.out.host, truth.out), bar(same.out, truth.out, epsilon));
  EXPECT_LE(attention_error(run.lse.download(), truth.lse), bar(same.lse, truth.lse, epsilon));
  EXPECT_LE(attention_error(run.dq.host, truth.dq), bar(same.dq, truth.dq, epsilon));
  EXPECT_LE(attention_error(run.dk.host, truth.dk), bar(same.dk, truth.dk, epsilon));
  EXPECT_LE(attention_error(run.dv.host, truth.dv), bar(same.dv, truth.dv, epsilon));
  for (const Tensor<T>* x : {&run.out, &run.dq, &run.dk, &run.dv})
    EXPECT_TRUE(x->surroundings_untouched());
}

TYPED_TEST(Attention, EqualsDefinition) {
  for (const AttentionCase& c : cases()) expect_definition<TypeParam>(c);
}

/// A spans pattern that host and device read.
class SharedSpans {
 public:
  explicit SharedSpans(const ops::SpanTable& table)
      : spans_(copied(table.spans())),
        hulls_(copied(table.hulls())),
        pattern(table.pattern(spans_.data(), hulls_.data())) {}

 private:
  template <class V>
  static Kokkos::View<V*, Kokkos::SharedSpace> copied(const std::vector<V>& values) {
    const Kokkos::View<V*, Kokkos::SharedSpace> result("spans", values.size());
    std::copy(values.begin(), values.end(), result.data());
    return result;
  }
  Kokkos::View<ops::KeySpans*, Kokkos::SharedSpace> spans_;
  Kokkos::View<ops::SpanHull*, Kokkos::SharedSpace> hulls_;

 public:
  const Pattern pattern;
};

/// Rows of block diffusion: samples with a prefix of 7, then `body` tokens in blocks, clean and
/// noisy; padding from the last whole sample on. Each sequence of the batch has blocks of its own
/// length.
SharedSpans block_spans(int batch, int tokens, int body, int block) {
  ops::SpanTable table(static_cast<std::size_t>(batch), static_cast<std::size_t>(tokens));
  constexpr int prefix = 7;
  for (int b = 0; b < batch; ++b, ++block)
    for (int begin = 0; begin + prefix + 2 * body <= tokens; begin += prefix + 2 * body)
      for (int i = 0; i < prefix + 2 * body; ++i) {
        ops::KeySpans& spans =
            table.at(static_cast<std::size_t>(b), static_cast<std::size_t>(begin + i));
        const int clean = begin + prefix, noisy = clean + body, token = (i - prefix) % body;
        const int first = token / block * block, last = std::min(first + block, body);
        if (i < prefix)
          spans = {{begin, clean}, {}};
        else if (i < prefix + body)
          spans = {{begin, clean + last}, {}};
        else
          spans = {{begin, clean + first}, {noisy + first, noisy + last}};
      }
  table.finish();
  return SharedSpans(table);
}

TYPED_TEST(Attention, EqualsDefinitionUnderSpans) {
  for (const auto& [tokens, body, block] :
       {std::tuple{40, 10, 3}, {64, 25, 1}, {150, 30, 16}, {150, 70, 70}, {300, 60, 8}})
    for (const int size : {16, 33}) {
      const SharedSpans spans = block_spans(3, tokens, body, block);
      expect_definition<TypeParam>({3, tokens, tokens, 4, 2, size, spans.pattern});
    }
}

TYPED_TEST(Attention, RepeatsBitForBit) {
  for (const AttentionCase& c : {AttentionCase{1, 150, 150, 4, 2, 32, causal},
                                 AttentionCase{4, 150, 150, 4, 2, 32, causal}}) {
    OnDevice<TypeParam> run(c);
    run.forward();
    run.backward();
    const auto out = run.out.host, dq = run.dq.host, dk = run.dk.host, dv = run.dv.host;
    run.spoil_results();
    run.forward();
    run.backward();
    EXPECT_EQ(run.out.host, out);
    EXPECT_EQ(run.dq.host, dq);
    EXPECT_EQ(run.dk.host, dk);
    EXPECT_EQ(run.dv.host, dv);
  }
}

TYPED_TEST(Attention, LargeScoresNeitherOverflowNorVanish) {
  OnDevice<TypeParam> run({1, 90, 90, 1, 1, 16, causal}, 40);  // scores of some thousands
  run.forward();
  run.backward();
  const DenseAttention truth = run.truth();
  const DenseAttention same = run.template reference<Accumulate<TypeParam>, TypeParam>();
  EXPECT_LE(attention_error(run.out.host, truth.out), bar(same.out, truth.out, 0));
  for (const auto* x : {&run.dq.host, &run.dk.host, &run.dv.host})
    for (const double value : *x) ASSERT_TRUE(std::isfinite(value));
}

TEST(AttentionRows, ThatSeeNothingGiveZeros) {
  OnDevice<float> run({1, 80, 80, 1, 1, 8, causal_from(-66)});
  run.forward();
  run.backward();
  const auto lse = run.lse.download();
  for (int t = 0; t < 66; ++t) {
    EXPECT_EQ(lse[t], -INFINITY);
    for (int e = 0; e < 8; ++e) {
      EXPECT_EQ(run.out.host[run.out.at(0, t, 0, e)], 0);
      EXPECT_EQ(run.dq.host[run.dq.at(0, t, 0, e)], 0);
    }
  }
  EXPECT_TRUE(std::isfinite(lse[66]));
  for (int t = 14; t < 80; ++t)  // keys that no query sees
    for (int e = 0; e < 8; ++e) EXPECT_EQ(run.dv.host[run.dv.at(0, t, 0, e)], 0);
}

TEST(AttentionRows, NonFiniteInputsShowWhereTheyAre) {
  OnDevice<float> run({2, 20, 20, 1, 1, 8, causal});
  run.q.host[run.q.at(0, 7, 0, 3)] = std::nan("");
  run.q.upload();
  run.forward();
  for (int t = 0; t < 20; ++t) {
    EXPECT_EQ(std::isnan(run.out.host[run.out.at(0, t, 0, 0)]), t == 7) << t;
    EXPECT_TRUE(std::isfinite(run.out.host[run.out.at(1, t, 0, 0)]));
  }
}

TEST(AttentionGradient, EqualsFiniteDifferences) {
  for (const AttentionCase& c :
       {AttentionCase{1, 5, 7, 4, 2, 3, causal_from(2)}, AttentionCase{2, 4, 4, 2, 1, 5, full}}) {
    SCOPED_TRACE(describe(c));
    OnDevice<double> run(c);
    run.forward();
    run.backward();
    const auto value = [&] {
      run.forward();
      double sum = 0;
      for (std::size_t i = 0; i < run.out.host.size(); ++i)
        sum += run.out.host[i] * run.dout.host[i];
      return sum;
    };
    for (auto [x, dx] : {std::pair{&run.q, &run.dq}, {&run.k, &run.dk}, {&run.v, &run.dv}})
      for (std::size_t i = 0; i < x->host.size(); ++i) {
        const double before = x->host[i], step = 1e-5;
        x->host[i] = before + step, x->upload();
        const double above = value();
        x->host[i] = before - step, x->upload();
        const double below = value();
        x->host[i] = before, x->upload();
        EXPECT_NEAR(dx->host[i], (above - below) / (2 * step), 1e-8);
      }
  }
}

TEST(AttentionGolden, EqualsPyTorch) {
  const Golden golden(TERN_SOURCE_DIR "/tests/golden/attention.h5");
  for (int i = 0; i < 5; ++i) {
    const std::string group = fmt::format("attention/{}/", i);
    SCOPED_TRACE(group);
    const auto q = golden.shape(group + "q"), k = golden.shape(group + "k");
    const auto size = [](std::size_t n) { return static_cast<int>(n); };
    AttentionCase c{size(q[0]), size(q[1]), size(k[1]), size(q[2]), size(k[2]), size(q[3]), full};
    if (golden.number(group + "causal") != 0) c.pattern = causal_from(c.keys - c.queries);
    OnDevice<double> run(c);
    for (auto [name, x] :
         {std::pair{"q", &run.q}, {"k", &run.k}, {"v", &run.v}, {"dout", &run.dout}}) {
      x->host = golden.numbers(group + name);
      x->upload();
    }
    run.forward();
    run.backward();
    EXPECT_LT(attention_error(run.out.host, golden.numbers(group + "out")), 1e-13);
    EXPECT_LT(attention_error(run.dq.host, golden.numbers(group + "dq")), 1e-13);
    EXPECT_LT(attention_error(run.dk.host, golden.numbers(group + "dk")), 1e-13);
    EXPECT_LT(attention_error(run.dv.host, golden.numbers(group + "dv")), 1e-13);
  }
}

}  // namespace
}  // namespace tern
